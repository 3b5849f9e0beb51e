"""single_ops.py: the calls that torch_autocast_oracle.py tries, each with every combination of dtypes."""
import torch
import torch.nn.functional as F
from torch import nn


def ops_table(dev):
    """name -> (operand shapes, fn).  Only the floating operands vary in dtype."""
    L = lambda *s: torch.zeros(*s, dtype=torch.int64, device=dev)  # noqa: E731  integer/label tensor
    B = lambda *s: torch.zeros(*s, dtype=torch.bool, device=dev)  # noqa: E731
    t = {}

    def op(name, fn, **shapes):
        assert name not in t, name
        t[name] = (shapes, fn)

    def un(name, fn=None):
        op(name, fn or getattr(torch, name), x=(4, 6))

    def bi(name, fn=None, a=(4, 6), b=(4, 6)):
        op(name, fn or getattr(torch, name), a=a, b=b)

    # --- matmul family
    bi("matmul", a=(4, 6), b=(6, 5)); bi("mm", a=(4, 6), b=(6, 5))
    bi("matmul_3d2d", torch.matmul, a=(2, 4, 6), b=(6, 5)); bi("matmul_1d1d", torch.matmul, a=(6,), b=(6,))
    bi("__matmul__", lambda a, b: a @ b, a=(4, 6), b=(6, 5))
    bi("bmm", a=(2, 4, 6), b=(2, 6, 5)); bi("mv", a=(4, 6), b=(6,))
    bi("linear_nobias", F.linear, a=(4, 6), b=(5, 6))
    op("linear", F.linear, x=(4, 6), w=(5, 6), b=(5,))
    op("addmm", torch.addmm, c=(4, 5), a=(4, 6), b=(6, 5)); op("addmv", torch.addmv, c=(4,), a=(4, 6), b=(6,))
    op("addr", torch.addr, c=(4, 5), a=(4,), b=(5,))
    op("baddbmm", torch.baddbmm, c=(2, 4, 5), a=(2, 4, 6), b=(2, 6, 5))
    op("addbmm", torch.addbmm, c=(4, 5), a=(2, 4, 6), b=(2, 6, 5))
    op("chain_matmul", torch.chain_matmul, a=(4, 6), b=(6, 5), c=(5, 3))
    op("linalg_multi_dot", lambda a, b, c: torch.linalg.multi_dot([a, b, c]), a=(4, 6), b=(6, 5), c=(5, 3))
    bi("einsum", lambda a, b: torch.einsum("bij,bjk->bik", a, b), a=(2, 4, 6), b=(2, 6, 5))
    bi("einsum_outer", lambda a, b: torch.einsum("i,j->ij", a, b), a=(4,), b=(6,))
    un("einsum_sum", lambda x: torch.einsum("ij->i", x))
    bi("linalg_vecdot", torch.linalg.vecdot)
    bi("dot", a=(6,), b=(6,)); bi("vdot", a=(6,), b=(6,)); bi("inner", a=(4, 6), b=(5, 6))
    bi("outer", a=(4,), b=(5,)); bi("kron", a=(2, 2), b=(2, 2))
    bi("tensordot", lambda a, b: torch.tensordot(a, b, 1), a=(4, 6), b=(6, 5))
    op("bilinear", F.bilinear, x1=(4, 3), x2=(4, 5), w=(2, 3, 5), b=(2,))
    bi("cdist", a=(4, 6), b=(5, 6)); un("pdist", F.pdist); bi("dist")
    # --- convolutions
    op("conv1d", F.conv1d, x=(2, 3, 8), w=(4, 3, 3)); op("conv2d", F.conv2d, x=(2, 3, 8, 8), w=(4, 3, 3, 3))
    op("conv2d_bias", F.conv2d, x=(2, 3, 8, 8), w=(4, 3, 3, 3), b=(4,))
    op("conv2d_same", lambda x, w: F.conv2d(x, w, padding="same"), x=(2, 3, 8, 8), w=(4, 3, 3, 3))
    op("conv3d", F.conv3d, x=(2, 3, 4, 8, 8), w=(4, 3, 3, 3, 3))
    op("conv_transpose1d", F.conv_transpose1d, x=(2, 3, 8), w=(3, 4, 3))
    op("conv_transpose2d", F.conv_transpose2d, x=(2, 3, 8, 8), w=(3, 4, 3, 3))
    op("conv_transpose3d", F.conv_transpose3d, x=(2, 3, 4, 8, 8), w=(3, 4, 3, 3, 3))
    op("conv_tbc", lambda x, w, b: torch.conv_tbc(x, w, b), x=(8, 2, 3), w=(3, 3, 4), b=(4,))
    # --- attention, recurrent
    sd = F.scaled_dot_product_attention
    op("scaled_dot_product_attention", sd, q=(2, 4, 16, 64), k=(2, 4, 16, 64), v=(2, 4, 16, 64))
    op("sdpa_causal", lambda q, k, v: sd(q, k, v, is_causal=True), q=(2, 4, 16, 64), k=(2, 4, 16, 64), v=(2, 4, 16, 64))
    op("sdpa_float_mask", lambda q, k, v, m: sd(q, k, v, attn_mask=m),
       q=(2, 4, 16, 64), k=(2, 4, 16, 64), v=(2, 4, 16, 64), m=(16, 16))
    op("sdpa_bool_mask", lambda q, k, v: sd(q, k, v, attn_mask=B(16, 16)),
       q=(2, 4, 16, 64), k=(2, 4, 16, 64), v=(2, 4, 16, 64))
    op("lstm_cell", lambda x, h, c, wi, wh: torch.lstm_cell(x, (h, c), wi, wh),
       x=(4, 6), h=(4, 5), c=(4, 5), wi=(20, 6), wh=(20, 5))
    op("gru_cell", lambda x, h, wi, wh: torch.gru_cell(x, h, wi, wh), x=(4, 6), h=(4, 5), wi=(15, 6), wh=(15, 5))
    op("rnn_tanh_cell", lambda x, h, i, o: torch.rnn_tanh_cell(x, h, i, o), x=(4, 6), h=(4, 5), i=(5, 6), o=(5, 5))
    op("rnn_relu_cell", lambda x, h, i, o: torch.rnn_relu_cell(x, h, i, o), x=(4, 6), h=(4, 5), i=(5, 6), o=(5, 5))
    op("lstm", lambda x, h, c, wi, wh: torch.lstm(x, (h, c), (wi, wh), False, 1, 0.0, True, False, False)[0],
       x=(7, 4, 6), h=(1, 4, 5), c=(1, 4, 5), wi=(20, 6), wh=(20, 5))

    def lstm_nocudnn(x, h, c, wi, wh):
        with torch.backends.cudnn.flags(enabled=False):
            return torch.lstm(x, (h, c), (wi, wh), False, 1, 0.0, True, False, False)[0]
    op("lstm_nocudnn", lstm_nocudnn, x=(7, 4, 6), h=(1, 4, 5), c=(1, 4, 5), wi=(20, 6), wh=(20, 5))
    # --- norms
    op("layer_norm", lambda x, w, b: F.layer_norm(x, (6,), w, b), x=(4, 6), w=(6,), b=(6,))
    un("layer_norm_noaffine", lambda x: F.layer_norm(x, (6,)))
    op("rms_norm", lambda x, w: F.rms_norm(x, (6,), w), x=(4, 6), w=(6,))
    un("rms_norm_noaffine", lambda x: F.rms_norm(x, (6,)))
    op("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), x=(2, 4, 8, 8), w=(4,), b=(4,))
    op("batch_norm_train", lambda x, w, b, rm, rv: F.batch_norm(x, rm, rv, w, b, training=True),
       x=(2, 4, 8, 8), w=(4,), b=(4,), rm=(4,), rv=(4,))
    op("batch_norm_eval", lambda x, w, b, rm, rv: F.batch_norm(x, rm, rv, w, b, training=False),
       x=(2, 4, 8, 8), w=(4,), b=(4,), rm=(4,), rv=(4,))
    op("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), x=(2, 4, 8, 8), w=(4,), b=(4,))
    op("local_response_norm", lambda x: F.local_response_norm(x, 2), x=(2, 4, 8, 8))
    un("normalize", lambda x: F.normalize(x))
    un("norm"); un("norm_dim", lambda x: torch.norm(x, dim=1)); un("Tensor.norm", lambda x: x.norm(1, dim=1))
    un("linalg_vector_norm", torch.linalg.vector_norm); un("linalg_matrix_norm", torch.linalg.matrix_norm)
    un("linalg_norm", torch.linalg.norm); un("frobenius_norm", lambda x: torch.norm(x, p="fro"))
    un("nuclear_norm", lambda x: torch.norm(x, p="nuc")); un("renorm", lambda x: torch.renorm(x, 2, 0, 1.0))
    bi("cosine_similarity", F.cosine_similarity); bi("pairwise_distance", F.pairwise_distance)
    # --- softmax and losses
    sm = lambda f: (lambda x: f(x, dim=-1))  # noqa: E731
    un("softmax", sm(F.softmax)); un("log_softmax", sm(F.log_softmax)); un("softmin", sm(F.softmin))
    un("logsumexp", sm(torch.logsumexp)); un("logcumsumexp", sm(torch.logcumsumexp))
    un("softmax_dtype_f16", lambda x: F.softmax(x, dim=-1, dtype=torch.float16))
    un("cross_entropy", lambda x: F.cross_entropy(x, L(4)))
    un("cross_entropy_smooth", lambda x: F.cross_entropy(x, L(4), label_smoothing=0.1))
    bi("cross_entropy_prob", F.cross_entropy)
    op("cross_entropy_weight", lambda x, w: F.cross_entropy(x, L(4), w), x=(4, 6), w=(6,))
    op("cross_entropy_2d", lambda x: F.cross_entropy(x, L(2, 8, 8)), x=(2, 6, 8, 8))
    un("nll_loss", lambda x: F.nll_loss(x, L(4))); op("nll_loss2d", lambda x: F.nll_loss(x, L(2, 8, 8)), x=(2, 6, 8, 8))
    bi("mse_loss", F.mse_loss); bi("l1_loss", F.l1_loss); bi("smooth_l1_loss", F.smooth_l1_loss)
    bi("huber_loss", F.huber_loss); bi("kl_div", F.kl_div); bi("poisson_nll_loss", F.poisson_nll_loss)
    bi("bce_with_logits", F.binary_cross_entropy_with_logits); bi("binary_cross_entropy", F.binary_cross_entropy)
    bi("hinge_embedding_loss", F.hinge_embedding_loss); bi("soft_margin_loss", F.soft_margin_loss)
    op("margin_ranking_loss", F.margin_ranking_loss, a=(4,), b=(4,), y=(4,))
    op("cosine_embedding_loss", lambda a, b: F.cosine_embedding_loss(a, b, L(4)), a=(4, 6), b=(4, 6))
    op("triplet_margin_loss", F.triplet_margin_loss, a=(4, 6), p=(4, 6), n=(4, 6))
    un("multi_margin_loss", lambda x: F.multi_margin_loss(x, L(4)))
    un("multilabel_margin_loss", lambda x: F.multilabel_margin_loss(x, L(4, 6)))
    op("ctc_loss", lambda x: F.ctc_loss(x, torch.ones(2, 3, dtype=torch.int64, device=dev), (7, 7), (3, 3)),
       x=(7, 2, 6))
    # --- pointwise, fp32 list
    for n in "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan".split():
        un(n)
    un("pow_scalar_exp", lambda x: torch.pow(x, 2)); un("x**2", lambda x: x ** 2); un("2**x", lambda x: 2.0 ** x)
    bi("pow"); un("square"); un("softplus", F.softplus)
    # --- pointwise, unlisted
    for n in ("sqrt abs neg sin cos tanh sigmoid erf erfc exp2 atan asinh acosh atanh floor ceil round sign lgamma "
              "digamma sinc sgn logit nan_to_num").split():
        un(n)
    for n in ("relu gelu silu mish leaky_relu elu selu celu hardtanh hardswish hardsigmoid softsign logsigmoid relu6 "
              "tanhshrink hardshrink softshrink threshold").split():
        un(n, (lambda x: F.threshold(x, 0.1, 0.0)) if n == "threshold" else getattr(F, n))
    un("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")); un("glu", F.glu)
    op("prelu", F.prelu, x=(4, 6), w=(1,))
    bi("add"); bi("sub"); bi("mul"); bi("div"); bi("maximum"); bi("minimum"); bi("fmod"); bi("remainder")
    bi("hypot"); bi("logaddexp"); bi("xlogy"); bi("copysign")
    un("add_scalar", lambda x: x + 1.5); un("mul_scalar", lambda x: x * 1.5); un("rdiv_scalar", lambda x: 1.0 / x)
    bi("add_0dim_b", torch.add, b=()); bi("mul_0dim_b", torch.mul, b=())
    bi("floor_divide"); un("clamp", lambda x: x.clamp(-1, 1))
    op("clamp_tensor", lambda x, lo, hi: torch.clamp(x, lo, hi), x=(4, 6), lo=(4, 6), hi=(4, 6))
    op("lerp", torch.lerp, a=(4, 6), b=(4, 6), w=(4, 6))
    op("where", lambda a, b: torch.where(B(4, 6), a, b), a=(4, 6), b=(4, 6))
    un("where_scalar", lambda x: torch.where(B(4, 6), x, 0.0)); un("masked_fill", lambda x: x.masked_fill(B(4, 6), 0.0))
    for n in "eq lt ge isclose".split():
        bi(n)
    un("isnan"); un("isfinite")
    # --- promote list
    op("addcmul", torch.addcmul, x=(4, 6), a=(4, 6), b=(4, 6))
    op("addcdiv", torch.addcdiv, x=(4, 6), a=(4, 6), b=(4, 6))
    bi("atan2"); bi("cross", lambda a, b: torch.linalg.cross(a, b), a=(4, 3), b=(4, 3))
    bi("torch.cross", lambda a, b: torch.cross(a, b, dim=1), a=(4, 3), b=(4, 3))
    bi("grid_sample", lambda a, b: F.grid_sample(a, b, align_corners=False), a=(2, 3, 8, 8), b=(2, 5, 5, 2))
    bi("index_put", lambda a, b: a.index_put((L(2),), b), a=(4,), b=(2,))
    bi("scatter_add", lambda a, b: a.scatter_add(0, L(4), b), a=(4,), b=(4,))
    # --- related, unlisted
    bi("scatter", lambda a, b: a.scatter(0, L(4), b), a=(4,), b=(4,))
    bi("scatter_reduce", lambda a, b: a.scatter_reduce(0, L(4), b, "sum"), a=(4,), b=(4,))
    bi("index_add", lambda a, b: a.index_add(0, L(4), b), a=(4,), b=(4,))
    bi("index_copy", lambda a, b: a.index_copy(0, L(4), b), a=(4,), b=(4,))
    bi("setitem_index", lambda a, b: a.clone().__setitem__(L(2), b) or a, a=(4,), b=(2,))
    bi("masked_scatter", lambda a, b: a.masked_scatter(B(4, 6), b))
    un("gather", lambda x: x.gather(0, L(4, 6))); un("index_select", lambda x: x.index_select(0, L(3)))
    bi("cat", lambda a, b: torch.cat([a, b])); bi("stack", lambda a, b: torch.stack([a, b]))
    # --- reductions
    un("sum"); un("sum_dim", lambda x: x.sum(1)); un("prod"); un("prod_dim", lambda x: x.prod(1))
    un("sum_dtype_f16", lambda x: x.sum(dtype=torch.float16)); un("sum_dtype_f64", lambda x: x.sum(dtype=torch.float64))
    un("cumsum", lambda x: x.cumsum(0)); un("cumprod", lambda x: x.cumprod(0))
    un("mean"); un("mean_dim", lambda x: x.mean(1)); un("var"); un("std"); un("nansum"); un("trace")
    un("var_mean", torch.var_mean); un("amax"); un("max"); un("max_dim", lambda x: x.max(1)); un("median")
    un("topk", lambda x: x.topk(2)); un("sort"); un("argmax"); un("argsort"); un("quantile", lambda x: x.quantile(0.5))
    un("diff"); un("std_mean", torch.std_mean); un("aminmax", torch.aminmax); un("all", torch.all)
    # --- nn misc
    op("embedding", lambda w: F.embedding(L(3), w), w=(10, 4))
    op("embedding_bag", lambda w: F.embedding_bag(L(2, 3), w, mode="sum"), w=(10, 4))
    op("embedding_bag_psw", lambda w, p: F.embedding_bag(L(2, 3), w, mode="sum", per_sample_weights=p), w=(10, 4),
       p=(2, 3))
    un("dropout", lambda x: F.dropout(x, 0.5, True)); un("dropout_eval", lambda x: F.dropout(x, 0.5, False))
    img = (2, 3, 8, 8)
    op("max_pool2d", lambda x: F.max_pool2d(x, 2), x=img); op("avg_pool2d", lambda x: F.avg_pool2d(x, 2), x=img)
    op("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 2), x=img)
    op("adaptive_avg_pool2d_1", lambda x: F.adaptive_avg_pool2d(x, 1), x=img)
    op("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, 2), x=img)
    op("lp_pool2d", lambda x: F.lp_pool2d(x, 2, 2), x=img)
    for m in ("nearest", "nearest-exact", "bilinear", "bicubic", "area"):
        op(f"interpolate_{m}", (lambda m: lambda x: F.interpolate(x, scale_factor=2, mode=m))(m), x=img)
    op("interpolate_bilinear_aa", lambda x: F.interpolate(x, size=(4, 4), mode="bilinear", antialias=True), x=img)
    op("interpolate_linear1d", lambda x: F.interpolate(x, scale_factor=2, mode="linear"), x=(2, 3, 8))
    op("interpolate_nearest1d", lambda x: F.interpolate(x, scale_factor=2), x=(2, 3, 8))
    op("interpolate_trilinear", lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), x=(2, 3, 4, 4, 4))
    op("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), x=(2, 4, 8, 8)); op("pad", lambda x: F.pad(x, (1, 1)), x=img)
    op("pad_reflect", lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), x=img)
    op("unfold", lambda x: F.unfold(x, 2), x=img); op("fold", lambda x: F.fold(x, (8, 8), 2, stride=2), x=(2, 12, 16))
    un("tril"); un("flip", lambda x: x.flip(0)); un("roll", lambda x: x.roll(1)); un("rfft", torch.fft.rfft)
    un("linalg_inv", lambda x: torch.linalg.inv(x[:4, :4])); un("linalg_svd", lambda x: torch.linalg.svd(x)[0])
    un("linalg_solve", lambda x: torch.linalg.solve(x[:4, :4], x)); un("linalg_qr", lambda x: torch.linalg.qr(x)[0])
    if hasattr(torch.linalg, "matrix_sqrth"):
        un("linalg_matrix_sqrth", lambda x: torch.linalg.matrix_sqrth(x[:4, :4]))
    # --- in place and out= (not autocast: the AutocastCUDA kernels are on the functional overloads only)
    un("exp_", lambda x: x.clone().exp_()); un("pow_", lambda x: x.clone().pow_(2))
    bi("add_", lambda a, b: a.clone().add_(b)); bi("mul_", lambda a, b: a.clone().mul_(b))
    op("addmm_", lambda c, a, b: c.clone().addmm_(a, b), c=(4, 5), a=(4, 6), b=(6, 5))
    op("baddbmm_", lambda c, a, b: c.clone().baddbmm_(a, b), c=(2, 4, 5), a=(2, 4, 6), b=(2, 6, 5))
    op("addcmul_", lambda c, a, b: c.clone().addcmul_(a, b), c=(4, 6), a=(4, 6), b=(4, 6))
    op("mm_out", lambda a, b, o: torch.mm(a, b, out=o), a=(4, 6), b=(6, 5), o=(4, 5))
    op("sum_out", lambda x, o: torch.sum(x, 1, out=o), x=(4, 6), o=(4,))
    bi("index_put_", lambda a, b: a.clone().index_put_((L(2),), b), a=(4,), b=(2,))
    bi("scatter_add_", lambda a, b: a.clone().scatter_add_(0, L(4), b), a=(4,), b=(4,))
    # --- what else the language has
    bi("ne"); bi("gt"); bi("le"); un("amin"); un("argmax_dim", lambda x: x.argmax(1))
    op("linear_3d", F.linear, x=(2, 4, 6), w=(5, 6), b=(5,)); bi("matmul_4d", torch.matmul, a=(2, 3, 4, 6), b=(3, 6, 5))
    bi("sub_0dim_a", torch.sub, a=(), b=(4, 6)); bi("add_0dim_both", torch.add, a=(), b=())
    op("where_0dim", lambda a, b: torch.where(B(4, 6), a, b), a=(4, 6), b=())
    un("reshape", lambda x: x.reshape(6, 4)); un("flatten", lambda x: x.flatten(0))
    un("transpose", lambda x: x.transpose(0, 1))
    op("permute", lambda x: x.permute(2, 0, 1), x=(2, 3, 4)); un("slice", lambda x: x[:, 1:3])
    un("expand", lambda x: x.expand(2, 4, 6)); bi("stack_0dim", lambda a, b: torch.stack([a, b]), a=(), b=())
    return t


# Those that the language has, by PyTorch's names; tests/passes/torch_ops_test.cc holds the policies against their rows.
LANGUAGE = frozenset("""
    matmul mm bmm matmul_3d2d matmul_4d linear linear_nobias linear_3d conv2d conv2d_bias
    add sub mul div neg add_scalar mul_scalar rdiv_scalar add_0dim_b mul_0dim_b sub_0dim_a add_0dim_both
    exp log sqrt rsqrt abs erf tanh sigmoid relu gelu gelu_tanh silu softplus pow_scalar_exp x**2 square clamp
    where where_scalar where_0dim eq ne lt le gt ge dropout
    sum sum_dim mean mean_dim var std amax amin max argmax argmax_dim softmax log_softmax
    reshape flatten transpose permute slice pad expand cat stack stack_0dim embedding
    max_pool2d avg_pool2d adaptive_avg_pool2d_1 batch_norm_train batch_norm_eval layer_norm
    cross_entropy cross_entropy_smooth nll_loss mse_loss bce_with_logits
    scaled_dot_product_attention sdpa_causal sdpa_float_mask sdpa_bool_mask
    l1_loss smooth_l1_loss huber_loss kl_div cross_entropy_weight logsumexp linalg_vector_norm prod cumsum topk
    leaky_relu elu hardswish hardsigmoid mish prelu reciprocal sign floor expm1 log1p maximum minimum remainder
    conv_transpose2d rms_norm adaptive_avg_pool2d group_norm instance_norm
    interpolate_nearest interpolate_bilinear
""".split())
