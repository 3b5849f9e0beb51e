/* descriptor.c: the descriptor of amp/model_abi.h as C text: the whole model, with the programs of every target. */
#include "base/dtypes.h"
#include "codegen/descriptor.h"

#include "amp/model_abi.h"
#include "amp/version.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/names.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cuda/cuda.h"
#include "codegen/kept_text.h"
#include "ir/places.h"
#include "ir/words.h"
#include "targets/target.h"

/* ---- enums of the IR that the tables hold as numbers ------------------------------------------------------------- */

#define SAME(ir, abi) _Static_assert((int)(ir) == (int)(abi), #ir " is " #abi)
SAME(LAYOUT_ROWS, AMP_LAYOUT_ROWS);
SAME(LAYOUT_PANELS, AMP_LAYOUT_PANELS);
SAME(LAYOUT_PAIRS, AMP_LAYOUT_PAIRS);
SAME(LAYOUT_PANELS_T, AMP_LAYOUT_PANELS_T);
SAME(LAYOUT_PAIRS_T, AMP_LAYOUT_PAIRS_T);
#define KERNEL(id, ...) SAME(KERNEL_##id, AMP_KERNEL_##id);
#include "base/kernels.def"
#undef KERNEL
SAME(BUFFER_TEMP, AMP_BUFFER_TEMP);
SAME(BUFFER_FLAG, AMP_BUFFER_FLAG);
SAME(BUFFER_INPUT, AMP_BUFFER_INPUT);
SAME(BUFFER_OUTPUT, AMP_BUFFER_OUTPUT);
SAME(BUFFER_STATE, AMP_BUFFER_STATE);
SAME(BUFFER_WATCH, AMP_BUFFER_WATCH);
SAME(BUFFER_LOOK, AMP_BUFFER_LOOK);
SAME(STATE_PARAM, AMP_STATE_PARAM);
SAME(STATE_BUFFER, AMP_STATE_BUFFER);
SAME(STATE_MOMENT, AMP_STATE_MOMENT);
SAME(STATE_COUNTER, AMP_STATE_COUNTER);
SAME(STATE_SCALER, AMP_STATE_SCALER);
SAME(STATE_DERIVED, AMP_STATE_DERIVED);
SAME(STATE_ACCUMULATOR, AMP_STATE_ACCUMULATOR);
SAME(STATE_STAGED, AMP_STATE_STAGED);
SAME(RESULT_MODEL, AMP_RESULT_MODEL);
SAME(PROGRAM_OTHER, AMP_PROGRAM_OTHER);
SAME(COUNTER_NONE, AMP_COUNTER_NONE);
SAME(NO_BLOCK, AMP_MODEL_NONE);
#define RESULT(kind, ...) SAME(RESULT_##kind, AMP_RESULT_##kind);
#define PROGRAM(kind, ...) SAME(PROGRAM_##kind, AMP_PROGRAM_##kind);
#define COUNTER(kind, ...) SAME(COUNTER_##kind, AMP_COUNTER_##kind);
#include "base/names.def"
_Static_assert((int)MAX_RANK <= (int)AMP_MODEL_MAX_RANK, "the tables hold every shape of the IR");

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static void put_inputs(TableWriter *x) {
    if (x->inputs.len) text_puts(x->t, "static const amp_model_input inputs[] = {\n");
    for (int i = 0; i < x->inputs.len; i++) {
        const ModelInput *in = &x->inputs.data[i];
        text_puts(x->t, "    {");
        table_put_field(x->t, "name", in->value->name);
        text_printf(x->t, ".dtype = %d, .rank = %d, ", in->value->dtype, in->value->shape.rank);
        table_put_dims(x->t, &in->value->shape);
        text_printf(x->t, ", .train_only = %d, .index_bound = %lld, .index_ignore = %lld},\n", in->kind,
                    (long long)in->index_bound, (long long)in->index_ignore);
    }
    if (x->inputs.len) text_puts(x->t, "};\n\n");
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static void put_call(TableWriter *x, const char *field, const Call *c) {
    Text call;
    text_init(&call, x->m->arena);
    ir_print_call(&call, c);
    table_put_field(x->t, field, text_str(&call));
}

static int put_groups_of(TableWriter *x, int block) {
    const Train *train = &x->m->trains.data[block];
    for (int i = 0; i < train->groups.len; i++) {
        const TrainGroup *g = &train->groups.data[i];
        const unsigned sets = (g->has_lr_scale ? AMP_GROUP_LR_SCALE : 0u) |
                              (g->has_weight_decay ? AMP_GROUP_WEIGHT_DECAY : 0u) |
                              (g->frozen ? AMP_GROUP_FROZEN : 0u) | (g->optimizer.name ? AMP_GROUP_OPTIMIZER : 0u);
        text_puts(x->t, "    {");
        table_put_field(x->t, "pattern", g->pattern);
        if (g->optimizer.name) put_call(x, "optimizer", &g->optimizer);
        text_printf(x->t, ".train_block = %d, .sets = %u, .line = %d, .lr_scale = %s, ", block, sets, g->pos.line,
                    emit_literal(x->m->arena, AMP_DT_F64, g->has_lr_scale ? g->lr_scale : 1.0));
        text_printf(x->t, ".weight_decay = %s},\n",
                    emit_literal(x->m->arena, AMP_DT_F64, g->has_weight_decay ? g->weight_decay : 0.0));
    }
    return train->groups.len;
}

/* Train blocks, and the groups of all of them; returns how many groups. */
static int put_training(TableWriter *x) {
    const Module *m = x->m;
    const int blocks = m->trains.len, groups = blocks ? ir_group_number(m, blocks, 0) : 0;
    if (blocks) text_puts(x->t, "static const amp_model_train trains[] = {\n");
    for (int i = 0; i < blocks; i++) {
        text_puts(x->t, "    {");
        table_put_field(x->t, "only", m->trains.data[i].only);
        put_call(x, "optimizer", &m->trains.data[i].optimizer);
        text_puts(x->t, "},\n");
    }
    if (blocks) text_puts(x->t, "};\n\n");
    if (groups) text_puts(x->t, "static const amp_model_group groups[] = {\n");
    for (int i = 0; i < blocks; i++) put_groups_of(x, i);
    if (groups) text_puts(x->t, "};\n\n");
    return groups;
}

/* ---- decisions --------------------------------------------------------------------------------------------------- */

/* The row of a decision's reason. */
static const char *reason_row(Arena *a, const Decision *d) {
    Text row, text;
    text_init(&row, a);
    text_init(&text, a);
    if (d->reason) {
        ir_print_reason(&text, d->reason);
        table_put_field(&row, "rule", d->reason->rule);
        table_put_field(&row, "text", text_str(&text));
        table_put_field(&row, "because", d->reason->because);
    }
    table_put_field(&row, "policy_text", d->policy_text);
    return text_str(&row);
}

/* The table of reasons, each once; the number of each decision's. */
static const int *put_reasons(TableWriter *x) {
    const Module *m = x->m;
    Table rows = {0};
    int *number = arena_array(m->arena, int, m->decisions.len + 1);
    if (m->decisions.len) text_puts(x->t, "static const amp_model_reason reasons[] = {\n");
    for (int i = 0; i < m->decisions.len; i++) {
        const char *row = reason_row(m->arena, &m->decisions.data[i]);
        uintptr_t known = (uintptr_t)table_get(&rows, row);
        if (!known) {
            known = (uintptr_t)rows.entries.len + 1;
            table_set(m->arena, &rows, row, (void *)known);
            text_printf(x->t, "    {%s},\n", row);
        }
        number[i] = (int)known - 1;
    }
    if (m->decisions.len) text_puts(x->t, "};\n\n");
    return number;
}

static void put_decisions(TableWriter *x) {
    const Module *m = x->m;
    const int *reason = put_reasons(x);
    if (m->decisions.len) text_puts(x->t, "static const amp_model_decision decisions[] = {\n");
    for (int i = 0; i < m->decisions.len; i++) {
        const Decision *d = &m->decisions.data[i];
        text_puts(x->t, "    {");
        table_put_field(x->t, "path", d->path);
        table_put_field(x->t, "op", d->op);
        table_put_field(x->t, "file", d->pos.file);
        text_printf(x->t, ".reason = &reasons[%d], .out = %d, .line = %d, .column = %d},\n", reason[i], d->out,
                    d->pos.line, d->pos.column);
    }
    if (m->decisions.len) text_puts(x->t, "};\n\n");
}

/* ---- the descriptor ---------------------------------------------------------------------------------------------- */

/* The text of a module in a section of its own; in its place with |no_ir| where the model came from. */
static void put_ir(Text *t, const Module *m, const char *section, bool no_ir, char hex[65]) {
    Arena *memory = arena_child(t->arena);
    uint8_t digest[32];
    Text ir, packed;
    text_init(&ir, memory);
    text_init(&packed, memory);
    ir_print(&ir, m);
    amp_sha256_of(text_str(&ir), ir.len, digest);
    amp_sha256_hex(digest, hex);
    if (no_ir) text_printf(&packed, "%s%s", AMP_MODEL_NO_IR, m->source_name ? m->source_name : "the model");
    else kept_text_pack(&ir, &packed);
    kept_text_section(t, section, &packed);
    arena_free(memory);
}

/* What both modules keep is in the CPU's alone. */
static void put_irs(TableWriter *x, const CodegenCuda *cuda, bool no_ir, char hex[65]) {
    char other[65];
    put_ir(x->t, x->m, "AMP_MODEL_IR_SECTION", no_ir, hex);
    if (!cuda || !cuda->code) return;
    Module m = *codegen_cuda_module(cuda->code);
    m.graph_text = m.model_text = m.policy_text = NULL;
    put_ir(x->t, &m, "AMP_MODEL_CUDA_IR_SECTION", no_ir, other);
}

static void put_digest(Text *t, const char *field, const char *hex) {
    text_printf(t, "    .%s = {", field);
    for (int i = 0; i < 64 && strlen(hex) == 64; i += 2) text_printf(t, "%s0x%.2s", i ? ", " : "", hex + i);
    text_puts(t, strlen(hex) == 64 ? "},\n" : "0},\n");
}

static void put_optimizers(TableWriter *x) {
    const Call *optimizer;
    Text all;
    text_init(&all, x->m->arena);
    for (int i = 0; (optimizer = ir_optimizer_at(x->m, i)); i++) {
        if (i) text_puts(&all, "; ");
        ir_print_call(&all, optimizer);
    }
    if (all.len) table_put_field(x->t, "optimizer", text_str(&all));
}

static void put_texts(TableWriter *x, const CodegenCuda *cuda) {
    const Module *m = x->m;
    const struct {
        const char *field, *text; /* NULL: not there */
    } texts[] = {
        {"version", AMP_VERSION},
        {"name", m->name},
        {"target", targets[0]->name},
        {"policy", m->policy_name},
        {"precision", amp_precision_word(m->low)}, /* the policy's, whatever the model asks for */
        {"low", amp_dtype_name(m->low)},
        {"source_name", m->source_name},
        {"sums", m->sums != SUMS_IEEE ? ir_sums_names[m->sums] : NULL},
        {"cuda_missing", cuda ? cuda->missing : NULL},
    };
    text_puts(x->t, "    ");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) table_put_field(x->t, texts[i].field, texts[i].text);
    put_optimizers(x);
    if (model_is_scaled(m)) put_call(x, "scaler", &m->loss_scale);
    text_putc(x->t, '\n');
}

/* How many elements those tables have that only their writers know. */
typedef struct Counts {
    int programs, groups, collectives;
} Counts;

static void put_tables(TableWriter *x, const Counts *n) {
    const Module *m = x->m;
    const struct {
        const char *type, *name;
        int count;
    } tables[] = {
        {"amp_model_state", "states", m->states.len},
        {"amp_model_input", "inputs", x->inputs.len},
        {"amp_model_program", "programs", n->programs},
        {"amp_model_decision", "decisions", m->decisions.len},
        {"amp_model_train", "trains", m->trains.len},
        {"amp_model_group", "groups", n->groups},
        {"amp_model_collective", "collectives", n->collectives},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        text_puts(x->t, "    ");
        table_put(x->t, tables[i].name, tables[i].type, tables[i].name, tables[i].count);
        text_puts(x->t, ",\n");
    }
}

static void put_descriptor(TableWriter *x, const Counts *counts, const char *ir_sha256, const CodegenCuda *cuda) {
    const Module *m = x->m;
    text_puts(x->t, "static const amp_model_desc descriptor = {\n"
                    "    .magic = AMP_MODEL_MAGIC, .struct_size = sizeof(amp_model_desc), .self = &descriptor,\n");
    put_texts(x, cuda);
    put_digest(x->t, "source_sha256", m->source_sha256);
    put_digest(x->t, "policy_sha256", m->policy_sha256);
    put_digest(x->t, "ir_sha256", ir_sha256);
    text_printf(x->t, "    .graph_ops = %d, .accumulate = %lld, .least_batch = %lld,\n", m->decisions.len,
                (long long)(m->accumulate > 1 ? m->accumulate : 1),
                (long long)(m->least_batch > 1 ? m->least_batch : 1));
    if (m->length.most)
        text_printf(x->t, "    .length_most = %lld, .length_unit = %lld,\n", (long long)m->length.most,
                    (long long)m->length.unit);
    put_tables(x, counts);
    text_puts(x->t, cuda && cuda->code ? "    .cuda = &cuda,\n};\n\n" : "};\n\n");
}

amp_status descriptor_emit(const Module *m, const KernelNames *names, const CodegenCuda *cuda, bool no_ir, Text *out,
                           amp_error *err) {
    TableWriter x = {.m = m, .t = out, .err = err, .prefix = ""};
    Counts counts = {0};
    char ir_sha256[65];
    AMP_TRY(model_inputs(m, &x.inputs, err));
    cpu_put_declarations(out, names);
    AMP_TRY(table_put_states(&x));
    put_inputs(&x);
    AMP_TRY(cpu_put_programs(&x, names, &counts.programs));
    put_decisions(&x);
    if (cuda && cuda->code) AMP_TRY(cuda_emit_tables(cuda, out, err));
    counts.groups = put_training(&x);
    counts.collectives = table_put_collectives(&x);
    put_irs(&x, cuda, no_ir, ir_sha256);
    put_descriptor(&x, &counts, ir_sha256, cuda);
    return AMP_OK;
}
