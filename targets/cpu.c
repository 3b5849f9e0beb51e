/* cpu.c: processors.  Products read panels, pairs and their transposes: 32 x 32 tiles, in which 16-bit elements that
 * are multiplied and added together are neighbours. */
#include "targets/target.h"

static Form contract_form(const Func *f, const Op *o, int i) {
    /* by [operand][transposed][16 bits] */
    static const Layout layouts[2][2][2] = {
        {{LAYOUT_PANELS, LAYOUT_PANELS}, {LAYOUT_PANELS, LAYOUT_PAIRS}},
        {{LAYOUT_PANELS, LAYOUT_PAIRS}, {LAYOUT_PANELS_T, LAYOUT_PAIRS_T}},
    };
    bool sixteen = ir_dtype(f, o->in[i]) == AMP_DT_BF16;
    return (Form){layouts[i][ir_attr(o, i ? "tb" : "ta")->b][sixteen], sixteen ? AMP_DT_BF16 : AMP_DT_F32};
}

static int64_t last_dim(const Func *f, Val v) {
    const Shape *s = ir_shape(f, v);
    return s->d[s->rank - 1].mul;
}

/* Images are stored in panels, or dense where a panel would be mostly padding; weights in panels, 16-bit ones in pairs
 * of neighbouring channels that are summed over, for which their number must be even. */
static Form convolution_form(const Func *f, const Op *o, int i) {
    bool weights = i == 1 && o->code != OP_conv_weight;
    bool in_pairs = o->code == OP_conv_weight || last_dim(f, o->in[0]) % 2 == 0;
    bool sixteen = ir_dtype(f, o->in[i]) == AMP_DT_BF16 && in_pairs;
    Form form = {LAYOUT_PANELS, sixteen ? AMP_DT_BF16 : AMP_DT_F32};
    if (weights && sixteen) form.layout = LAYOUT_PAIRS;
    if (!weights && last_dim(f, o->in[i]) < 32) form.layout = LAYOUT_ROWS;
    return form;
}

static Form product_form(const Func *f, const Op *o, int i) {
    return o->code == OP_contract ? contract_form(f, o, i) : convolution_form(f, o, i);
}

const Target target_cpu = {.name = "cpu", .has_tiles = true, .product_form = product_form};
