/* words.c: see server.h. */
#include "tools/ampc/lsp/server.h"

#include <string.h>

static const LanguageWord words[] = {
    {"amp", WORD_DECLARES, "`amp 1`: the first line of a file, the version of the language"},
    {"include", WORD_DECLARES, "`include \"layers.amp\"`: the blocks of another file, relative to this one"},
    {"const", WORD_DECLARES, "`const NAME = VALUE`: a number, bool or string; `ampc -D NAME=VALUE` overrides it"},
    {"inline", WORD_DECLARES, "`inline block NAME(x) { ... }`: a block whose calls add no name to paths"},
    {"block", WORD_DECLARES, "`block NAME(x; n: int = 1) { ... return y }`: a layer of your own"},
    {"model", WORD_DECLARES, "`model NAME(x: f32[N, 784]) -> y { ... }`: what is trained and run"},
    {"train", WORD_DECLARES, "`train NAME { input, loss, metric, optimizer }`: how the model is trained"},
    {"precision", WORD_DECLARES,
     "`precision fp16 { ... }` or `precision \"POLICY\" { ... }`: in which types it is computed"},
    {"param", WORD_BEGINS, "`param NAME: f32[SHAPE] = INITIALISER`: trained; an f32 master, whatever the precision"},
    {"state", WORD_BEGINS, "`state NAME: f32[SHAPE] = INITIALISER`: saved with the weights, not trained"},
    {"update", WORD_BEGINS, "`update STATE = VALUE`: what a state is after the step"},
    {"init", WORD_BEGINS, "`init \"GLOB\" = INITIALISER`: other first values of parameters by their paths"},
    {"input", WORD_BEGINS, "`input NAME: TYPE`: what training reads besides the model's inputs"},
    {"loss", WORD_BEGINS, "`loss = VALUE`: the scalar that is minimised; `loss NAME = VALUE`: one of several"},
    {"metric", WORD_BEGINS, "`metric NAME = VALUE`: reported beside the loss, averaged over batches"},
    {"group", WORD_BEGINS,
     "`group \"GLOB\": lr_scale = 0.1, weight_decay = 0.0, frozen = true, lazy = true, optimizer = lion(lr = 1e-4)`: "
     "of "
     "some parameters"},
    {"checkpoint", WORD_BEGINS, "`checkpoint { ... }`: its values are computed again in the backward pass, not kept"},
    {"require", WORD_BEGINS, "`require CONDITION, \"MESSAGE\"`: an error where the condition does not hold"},
    {"return", WORD_BEGINS, "`return VALUE`: the result of a block"},
    {"repeat", WORD_BEGINS, "`repeat I in FROM..TO { ... }`: the body for each index, at compile time"},
    {"if", WORD_BEGINS, "`if CONDITION { ... } else { ... }`: decided at compile time"},
    {"else", WORD_BEGINS, "`if CONDITION { ... } else { ... }`: decided at compile time"},
    {"in", WORD_INSIDE, "`repeat I in FROM..TO`"},
    {"as", WORD_INSIDE, "`CALL as PATH`: the path of the call's parameters and ops"},
    {"sharing", WORD_INSIDE, "`CALL sharing PATH`: with the parameters of an earlier call of the block"},
    {"because", WORD_INSIDE, "`\"PATH\": f32 because \"WHY\"`: the reason that `ampc explain` tells"},
    {"none", WORD_INSIDE, "no tensor, no loss scale"},
    {"true", WORD_INSIDE, "a bool"},
    {"false", WORD_INSIDE, "a bool"},
    {"and", WORD_INSIDE, "both are true, at compile time"},
    {"or", WORD_INSIDE, "one is true, at compile time"},
    {"not", WORD_INSIDE, "the other bool, at compile time"},
    {"N", WORD_INSIDE, "the batch: the one size that is known only when the model runs"},
    {"inf", WORD_INSIDE, "infinity"},
    {"dim", WORD_CALLED, "`dim(x, i)`: a size of a tensor; negative i count from the last"},
    {"rank", WORD_CALLED, "`rank(x)`: how many dimensions a tensor has"},
    {"given", WORD_CALLED, "`given(x)`: whether an argument of a block was given"},
    {"min", WORD_CALLED, "`min(a, b)`: the smaller number, at compile time; of tensors an op"},
    {"max", WORD_CALLED, "`max(a, b)`: the larger number, at compile time; of tensors an op"},
    {"fp16", WORD_PRECISION, "products in f16, accumulated in f32, under the policy min-cast; with a loss scale"},
    {"bf16", WORD_PRECISION, "products in bf16, accumulated in f32, under the policy min-cast-bf16"},
    {"tf32", WORD_PRECISION, "products of f32 rounded to 10 bits of mantissa"},
    {"fp32", WORD_PRECISION, "everything in f32"},
    {"loss_scale", WORD_SETS, "`loss_scale = dynamic(init = 65536.0)`, `static(1024.0)` or `none`"},
    {"eval_precision", WORD_SETS, "`eval_precision = fp32`: FP32 forms of evaluation and inference too"},
    {"reduce", WORD_SETS, "`reduce = bf16`: what processes that train together exchange gradients in"},
    {"data_parallel", WORD_SETS, "`data_parallel = true`: several processes may train the model together"},
    {"ema", WORD_SETS, "`ema = 0.999`: keeps an average of each parameter, to evaluate with (`amprun --ema`)"},
    {"optimizer", WORD_SETS, "`optimizer = adamw(lr = 0.001)`: how parameters follow their gradients"},
};

const LanguageWord *language_word(size_t index) {
    return index < sizeof words / sizeof words[0] ? &words[index] : NULL;
}

const LanguageWord *language_word_find(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].name) == length && !memcmp(words[i].name, name, length)) return &words[i];
    return NULL;
}

bool language_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
