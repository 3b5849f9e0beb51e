/* legal.c: the legality table: one row per op and level. */
#include "ir/legal.h"

/* A signature is OPERANDS>RESULTS, a letter each; '|' separates alternatives, '?' makes the letter before it optional,
 * '+' repeats it.
 *
 *   F  a float of the graph: f32, f16, bf16, tf32        f  f32        i  i32        b  bool
 *   P  the same, equal for all P of the op               d  f64        l  i64        *  anything
 *   T  anything, equal for all T of the op
 *
 * Core arithmetic is in f32; f64, i64, i32 and bool where scalars need them (bias correction, counters, the scale,
 * targets). */
typedef struct Legal {
    const char *graph, *core;
} Legal;

static const Legal table[OP_COUNT] = {
    [OP_linear] = {"PPF?>F", NULL},
    [OP_matmul] = {"PP>F", NULL},
    [OP_relu] = {"F>F", NULL},
    [OP_gelu] = {"F>F", NULL},
    [OP_sigmoid] = {"F>F", NULL},
    [OP_dropout] = {"F>F", NULL},
    [OP_sum] = {"F>F", NULL},
    [OP_mean] = {"F>F", NULL},
    [OP_softmax] = {"F>F", NULL},
    [OP_log_softmax] = {"F>F", NULL},
    [OP_nll_loss] = {"Fi>F", NULL},
    [OP_accuracy] = {"Fi>F", NULL},
    [OP_grad_seed] = {">F", NULL},
    [OP_relu_grad] = {"FF>F", NULL},
    [OP_gelu_grad] = {"FF>F", NULL},
    [OP_sigmoid_grad] = {"FF>F", NULL},
    [OP_tanh_grad] = {"FF>F", NULL},
    [OP_softmax_grad] = {"FF>F", NULL},
    [OP_log_softmax_grad] = {"FF>F", NULL},
    [OP_nll_loss_grad] = {"FFi>F", NULL},
    [OP_sum_to] = {"FF>F", NULL},
    [OP_broadcast_to] = {"FF>F", NULL},
    [OP_scale_loss] = {"Ff>F", NULL},
    [OP_inverse_scale] = {"f>f", NULL},
    [OP_unscale] = {"ff>f", NULL},
    [OP_all_finite] = {"F+>b", NULL},
    [OP_update_scale] = {"fib>fii", NULL},
    [OP_sgd] = {"ffldd>ff|fflddf>ff", NULL},
    [OP_adam] = {"fflddff>fff", NULL},
    [OP_adamw] = {"fflddff>fff", NULL},
    [OP_increment] = {"l>l", "l>l"},
    [OP_cast] = {"*>*", "*>*"},
    [OP_assign] = {"TT>", "TT>"},
    [OP_add] = {"FF>F|ii>i|ll>l", "ff>f|dd>d|ii>i|ll>l"},
    [OP_sub] = {"FF>F|ii>i|ll>l", "ff>f|dd>d|ii>i|ll>l"},
    [OP_mul] = {"FF>F|ii>i|dd>d", "ff>f|dd>d|ii>i|ll>l"},
    [OP_div] = {"FF>F", "ff>f|dd>d"},
    [OP_neg] = {"F>F|i>i", "f>f|d>d|i>i|l>l"},
    [OP_exp] = {"F>F", "f>f"},
    [OP_log] = {"F>F", "f>f"},
    [OP_sqrt] = {"F>F", "f>f|d>d"},
    [OP_tanh] = {"F>F", "f>f"},
    [OP_const] = {">F|>i|>l|>d", ">f|>d|>i|>l|>b"},
    [OP_contract] = {NULL, "PP>f"},
    [OP_maximum] = {NULL, "ff>f|dd>d|ii>i|ll>l"},
    [OP_minimum] = {NULL, "ff>f|dd>d|ii>i|ll>l"},
    [OP_erf] = {"F>F", "f>f"},
    [OP_lt] = {"FF>b|ii>b|ll>b", "ff>b|dd>b|ii>b|ll>b"},
    [OP_le] = {"FF>b|ii>b|ll>b", "ff>b|dd>b|ii>b|ll>b"},
    [OP_eq] = {"FF>b|ii>b|ll>b", "ff>b|dd>b|ii>b|ll>b"},
    [OP_and] = {NULL, "bb>b"},
    [OP_or] = {NULL, "bb>b"},
    [OP_not] = {NULL, "b>b"},
    [OP_is_finite] = {NULL, "f>b|d>b"},
    [OP_select] = {NULL, "bff>f|bdd>d|bii>i|bll>l|bbb>b"},
    [OP_iota] = {NULL, "*>i"},
    [OP_broadcast] = {NULL, "T*>T"},
    [OP_extent] = {NULL, "*>f"},
    [OP_random] = {NULL, "*ll>f|*lll>f"},
    [OP_reduce_sum] = {NULL, "f>f"},
    [OP_reduce_max] = {NULL, "f>f|i>i"},
    [OP_reduce_min] = {NULL, "f>f|i>i"},
    [OP_reduce_or] = {NULL, "b>b"},
    [OP_power] = {NULL, "l>d"},
    [OP_conv2d] = {"PPF?>F", NULL},
    [OP_abs] = {"F>F", "f>f|d>d|i>i"},
    [OP_silu] = {"F>F", NULL},
    [OP_softplus] = {"F>F", NULL},
    [OP_rsqrt] = {"F>F", NULL},
    [OP_clamp] = {"F>F", NULL},
    [OP_where] = {"bFF>F|bii>i|bll>l", NULL},
    [OP_ne] = {"FF>b|ii>b", NULL},
    [OP_gt] = {"FF>b|ii>b", NULL},
    [OP_ge] = {"FF>b|ii>b", NULL},
    [OP_reshape] = {"T>T", "T>T"},
    [OP_flatten] = {"T>T", NULL},
    [OP_transpose] = {"T>T", NULL},
    [OP_permute] = {"T>T", "T>T"},
    [OP_slice] = {"T>T", "T>T"},
    [OP_pad] = {"T>T", "T>T"},
    [OP_concat] = {"F+>F|T+>T", "T+>T"},
    [OP_stack] = {"F+>F|T+>T", NULL},
    [OP_expand] = {"T>T", "T>T"},
    [OP_full] = {">F|>i", NULL},
    [OP_arange] = {">i", NULL},
    [OP_embedding] = {"iF>F", NULL},
    [OP_max_pool2d] = {"F>Fi", NULL},
    [OP_avg_pool2d] = {"F>F", NULL},
    [OP_global_avg_pool] = {"F>F", NULL},
    [OP_batch_norm] = {"FFFFF>Ffff", NULL},
    [OP_batch_norm_eval] = {"FFFFF>F", NULL},
    [OP_layer_norm] = {"FFF?>Fff", NULL},
    [OP_max] = {"F>F", NULL},
    [OP_min] = {"F>F", NULL},
    [OP_var] = {"F>F", NULL},
    [OP_argmax] = {"F>i", NULL},
    [OP_mse_loss] = {"FF>F", NULL},
    [OP_bce_with_logits] = {"FF>F", NULL},
    [OP_top_k_accuracy] = {"Fi>F", NULL},
    [OP_conv2d_input_grad] = {"PP*>F", NULL},
    [OP_conv2d_weight_grad] = {"PP*>F", NULL},
    [OP_unary_grad] = {"FF>F", NULL},
    [OP_where_grad] = {"Fb>FF", NULL},
    [OP_embedding_grad] = {"Fi*>F", NULL},
    [OP_max_pool2d_grad] = {"Fi*>F", NULL},
    [OP_avg_pool2d_grad] = {"F*>F", NULL},
    [OP_global_avg_pool_grad] = {"F*>F", NULL},
    [OP_batch_norm_grad] = {"FFFff>FFF", NULL},
    [OP_layer_norm_grad] = {"FFFff>FFF", NULL},
    [OP_extreme_grad] = {"FFF>F", NULL},
    [OP_var_grad] = {"FF>F", NULL},
    [OP_mse_loss_grad] = {"FFF>FF", NULL},
    [OP_bce_with_logits_grad] = {"FFF>FF", NULL},
    [OP_global_norm] = {"F+>f", NULL},
    [OP_clip_by_norm] = {"ff>f", NULL},
    [OP_constant_rate] = {">d", NULL},
    [OP_cosine_rate] = {"l>d", NULL},
    [OP_step_rate] = {"l>d", NULL},
    [OP_linear_rate] = {"l>d", NULL},
    [OP_one_cycle_rate] = {"l>d", NULL},
    [OP_pow] = {"F>F", "f>f"},
    [OP_cos] = {NULL, "d>d"},
    [OP_conv] = {NULL, "PP>f"},
    [OP_conv_data] = {NULL, "PP>f"},
    [OP_conv_weight] = {NULL, "PP>f"},
    [OP_batch_contract] = {NULL, "PP>f"},
    [OP_window_max] = {NULL, "f>fi"},
    [OP_window_sum] = {NULL, "f>f"},
    [OP_window_max_grad] = {NULL, "fi>f"},
    [OP_window_sum_grad] = {NULL, "f>f"},
    [OP_gather] = {NULL, "Ti>T"},
    [OP_scatter] = {NULL, "fi>f"},
};

int legal_level(Stage stage) { return stage < STAGE_LOWER ? GRAPH : CORE; }

const char *legal_signatures(Opcode code, int level) { return level == GRAPH ? table[code].graph : table[code].core; }

/* ---- matching -------------------------------------------------------------------------------- */

typedef struct Matching {
    const Func *f;
    const char *at;      /* in the signature */
    Dtype product, type; /* what P and T stand for; AMP_DT_NONE: not met yet */
} Matching;

static bool is_graph_float(Dtype t) {
    return t == AMP_DT_F32 || t == AMP_DT_F16 || t == AMP_DT_BF16 || t == AMP_DT_TF32;
}

static bool same(Dtype *met, Dtype t) {
    if (*met == AMP_DT_NONE) *met = t;
    return *met == t;
}

/* Before autocast, floats that meet may differ: an f16 input and an f32 weight. */
static bool is_undecided(const Matching *m, Dtype t) {
    return m->f->module->stage == STAGE_ELABORATE && is_graph_float(t);
}

static bool matches_letter(Matching *m, char letter, Dtype t) {
    switch (letter) {
    case 'F': return is_graph_float(t);
    case 'P': return is_graph_float(t) && (is_undecided(m, t) || same(&m->product, t));
    case 'T': return same(&m->type, t) || (is_undecided(m, t) && is_undecided(m, m->type));
    case 'f': return t == AMP_DT_F32;
    case 'd': return t == AMP_DT_F64;
    case 'i': return t == AMP_DT_I32;
    case 'l': return t == AMP_DT_I64;
    case 'b': return t == AMP_DT_BOOL;
    default: return letter == '*';
    }
}

/* Values against letters up to '>', '|' or the end. */
static bool matches_list(Matching *m, const Val *list, int n) {
    for (int i = 0; i < n; i++) {
        if (m->at[0] && m->at[1] == '+' && !matches_letter(m, m->at[0], ir_dtype(m->f, list[i]))) return false;
        if (m->at[0] && m->at[1] == '+') continue;
        if (!matches_letter(m, *m->at, ir_dtype(m->f, list[i]))) return false;
        m->at += m->at[1] == '?' ? 2 : 1;
    }
    if (m->at[0] && (m->at[1] == '+' || m->at[1] == '?')) m->at += 2;
    return *m->at == '>' || *m->at == '|' || *m->at == '\0';
}

static bool matches(Matching *m, const Op *o) {
    if (!matches_list(m, o->in, o->n_in) || *m->at != '>') return false;
    m->at++;
    return matches_list(m, o->out, o->n_out) && *m->at != '>';
}

bool legal_types(const Func *f, const Op *o, int level) {
    for (const char *at = legal_signatures(o->code, level); at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        Matching m = {.f = f, .at = at};
        if (matches(&m, o)) return true;
    }
    return false;
}
