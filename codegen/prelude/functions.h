/* functions.h: elementary functions, once for the C of the CPU's kernels and for CUDA.
 *
 * The text is embedded as it is for the CPU, where vf, vi, vd and vl are vectors of float, int32_t, double and int64_t.
 * For CUDA elements.sed writes the same functions for single elements: exp_f32 of a float.  So both give the same bits,
 * if the CPU has fused multiply-adds.  Three things make that possible: a choice is select_vf, not a branch, bits
 * are taken by int_bits and float_bits, not by a cast, and a comparison is used only in a select.
 *
 * Bounds of the error, in units in the last place of f32, measured against long double over all finite arguments in
 * steps, on every instruction set (tests/codegen/math_test.cc):
 *
 *   exp 1   expm1 2   log 1   log1p 2.5   floor 0   tanh 1.5   erf 2.5   sin 1   cos 1   pow 0.501   remainder 0.5
 *   sqrt, /, +, -, * correctly rounded
 *
 * The polynomials are minimax fits by Lawson's iteration, each coefficient rounded to f32 before the next is fitted;
 * reductions follow W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980.
 */

#define POLY(r, x, c) ((r) = fma_vf((r), (x), splat_f(c)))

/* x = n ln 2 + r, |r| <= ln 2 / 2: n as the last bits of 1.5 * 2^23 + n. */
INLINE vf exp_whole_vf(vf x) { return fma_vf(x, splat_f(0x1.715476p0f), splat_f(0x1.8p23f)); }

/* e^r - 1 = r + r^2 P(r) */
INLINE vf exp_rest_vf(vf x, vf n) {
    vf r = fma_vf(n, splat_f(-0x1.62ep-1f), x);
    r = fma_vf(n, splat_f(-0x1.0bfbe8p-15f), r);
    vf p = splat_f(0x1.6a4d6ep-10f);
    POLY(p, r, 0x1.123e58p-7f);
    POLY(p, r, 0x1.5558b8p-5f);
    POLY(p, r, 0x1.55548cp-3f);
    POLY(p, r, 0x1.fffffcp-2f);
    return fma_vf(p, r * r, r);
}

/* e^x = 2^n e^r.  2^n goes on in two factors, so that the last one rounds once into the subnormals. */
INLINE vf exp_vf(vf x) {
    const vf t = exp_whole_vf(x), p = exp_rest_vf(x, t - 0x1.8p23f) + 1.0f;
    const vi k = int_bits(t) - 0x4B400000, k1 = k >> 1;
    const vf y = p * float_bits((k1 + 127) << 23) * float_bits((k - k1 + 127) << 23);
    const vf high = select_vf(x > 0x1.62e42ep6f, splat_f(INF), y);
    return select_vf(x < -0x1.9fe368p6f, splat_f(0.0f), high);
}
SCALAR(exp)

/* x = 2^n m, sqrt(1/2) <= m < sqrt(2), f = m - 1;  log x = n ln 2 + f - f^2 / 2 + f^3 P(f). */
INLINE vf log_vf(vf x) {
    const vi tiny = x < 0x1p-126f;
    const vf scaled = select_vf(tiny, x * 0x1p23f, x);
    const vi k = (int_bits(scaled) - 0x3F3504F3) >> 23;
    const vf f = float_bits(int_bits(scaled) - (k << 23)) - 1.0f;
    const vf n = float_vi(k + select_vi(tiny, splat_i(-23), splat_i(0)));
    vf p = splat_f(0x1.147204p-4f);
    POLY(p, f, -0x1.de00e4p-4f);
    POLY(p, f, 0x1.e6bff2p-4f);
    POLY(p, f, -0x1.fc28dep-4f);
    POLY(p, f, 0x1.233ba4p-3f);
    POLY(p, f, -0x1.555c44p-3f);
    POLY(p, f, 0x1.99a476p-3f);
    POLY(p, f, -0x1.000006p-2f);
    POLY(p, f, 0x1.555548p-2f);
    const vf half_square = 0.5f * f * f;
    const vf tail = fma_vf(n, splat_f(0x1.7f7d1cp-20f), f * f * f * p); /* ln 2 = 0x1.62e4p-1 + 0x1.7f7d1cp-20 */
    const vf y = fma_vf(n, splat_f(0x1.62e4p-1f), f + (tail - half_square));
    vf special = select_vf(x == 0.0f, splat_f(-INF), splat_f(NOT_A_NUMBER)); /* zero; negative or NaN */
    special = select_vf(x == INF, x, special);
    return select_vf((x > 0.0f) & (x < INF), y, select_vf(nan_vf(x), x, special));
}
SCALAR(log)

/* e^x - 1 = 2^n ((e^r - 1) + (1 - 2^-n)) with n and r of exp: e^r - 1 keeps the digits of a small x.  From -18 down
 * it is -1. */
INLINE vf expm1_vf(vf x) {
    const vf t = exp_whole_vf(x), n = t - 0x1.8p23f, p = exp_rest_vf(x, n);
    const vi k = int_bits(t) - 0x4B400000, k1 = k >> 1;
    const vf rest = 1.0f - select_vf(n > 126.0f, splat_f(0.0f), float_bits((127 - k) << 23));
    const vf y = (p + rest) * float_bits((k1 + 127) << 23) * float_bits((k - k1 + 127) << 23);
    const vf high = select_vf(x > 0x1.62e42ep6f, splat_f(INF), y);
    return select_vf(x == 0.0f, x, select_vf(x < -18.0f, splat_f(-1.0f), high));
}
SCALAR(expm1)

/* log(u) x / (u - 1), u = 1 + x: the rounding of u cancels (D. Goldberg, "What Every Computer Scientist Should Know
 * About Floating-Point Arithmetic", 1991, theorem 4). */
INLINE vf log1p_vf(vf x) {
    const vf u = x + 1.0f, y = log_vf(u) * (x / (u - 1.0f));
    return select_vf((u == 1.0f) | (x == INF), x, y);
}
SCALAR(log1p)

/* From 2^23 on every number is whole.  The sign of zero stays. */
INLINE vf floor_vf(vf x) {
    const vi sign = int_bits(x) & INT32_MIN;
    const vf a = float_bits(magnitude_bits(x)), nearest = float_bits(int_bits((a + 0x1p23f) - 0x1p23f) | sign);
    const vf below = nearest - select_vf(nearest > x, splat_f(1.0f), splat_f(0.0f));
    return select_vf(a < 0x1p23f, float_bits(int_bits(below) | sign), x);
}
SCALAR(floor)

/* |x| < 0.625: x + x^3 P(x^2); else 1 - 2 / (e^2|x| + 1). */
INLINE vf tanh_vf(vf x) {
    const vi sign = int_bits(x) & INT32_MIN;
    const vf a = float_bits(magnitude_bits(x)), z = x * x;
    vf p = splat_f(-0x1.750ce4p-8f);
    POLY(p, z, 0x1.51f8cep-6f);
    POLY(p, z, -0x1.b835a4p-5f);
    POLY(p, z, 0x1.1106f6p-3f);
    POLY(p, z, -0x1.555532p-2f);
    const vf small = fma_vf(x * z, p, x);
    const vf large = 1.0f - 2.0f / (exp_vf(a + a) + 1.0f);
    return select_vf(a < 0.625f, small, float_bits(int_bits(large) | sign));
}
SCALAR(tanh)

/* |x| < 1: x + x P(x^2); else 1 - e^-Q(|x| - 2.5), Q a fit of -log erfc; from 4 on it is 1. */
INLINE vf erf_vf(vf x) {
    const vi sign = int_bits(x) & INT32_MIN;
    const vf a = float_bits(magnitude_bits(x)), z = x * x;
    vf p = splat_f(0x1.4771fcp-14f);
    POLY(p, z, -0x1.a3515ep-11f);
    POLY(p, z, 0x1.53f224p-8f);
    POLY(p, z, -0x1.b7f71ap-6f);
    POLY(p, z, 0x1.ce2ce6p-4f);
    POLY(p, z, -0x1.81273ep-2f);
    POLY(p, z, 0x1.06eba8p-3f);
    const vf small = fma_vf(x, p, x);
    const vf t = min_vf(a, splat_f(4.0f)) - 2.5f;
    vf q = splat_f(0x1.735d44p-16f);
    POLY(q, t, -0x1.ed4170p-15f);
    POLY(q, t, 0x1.cc473ep-12f);
    POLY(q, t, -0x1.1a94f0p-9f);
    POLY(q, t, 0x1.63deb2p-7f);
    POLY(q, t, 0x1.e345fap-1f);
    POLY(q, t, 0x1.569250p2f);
    POLY(q, t, 0x1.f3a2dcp2f);
    const vf large = 1.0f - exp_vf(-q);
    return select_vf(a < 1.0f, small, float_bits(int_bits(large) | sign));
}
SCALAR(erf)

/* ---- sine and cosine: quarter turns are taken off in double, so that the rest keeps its digits ---- */

/* The nearest integer, |x| < 2^51. */
INLINE vd round_vd(vd x) { return (x + 0x1.8p52) - 0x1.8p52; }

/* x = quarters pi / 2 + r, |r| <= pi / 4, for a float x of any size (M. Payne and R. Hanek, "Radian Reduction for
 * Trigonometric Functions", SIGNUM Newsletter 18, 1983).  2 / pi is cut into parts of 26 bits, so each product with the
 * 24 bits of x is exact.  Products of 2^51 and more are multiples of 4 and left out.  Of the others whole quarters are
 * taken off before the next one is added, so the sum is exact down to the last digit that counts. */
INLINE vd reduce_large_vd(vd x, vd *quarters) {
    const double two_over_pi[8] = {0x1.45f3068p-1,  0x1.7272208p-27,  0x1.4a7f09p-54,  0x1.abe8fa8p-79,
                                   0x1.a6ee06p-107, 0x1.b629590p-132, 0x1.278872p-157, 0x1.07f944p-186};
    vd sum = splat_d(0.0), whole = splat_d(0.0);
    UNROLL
    for (int i = 0; i < 8; i++) {
        const vd p = x * two_over_pi[i], kept = select_vd((p < 0x1p51) & (p > -0x1p51), p, splat_d(0.0));
        const vd n = round_vd(kept), rest = sum + (kept - n), m = round_vd(rest);
        whole = whole + n + m;
        sum = rest - m;
    }
    *quarters = whole - 4.0 * round_vd(whole * 0.25);
    return sum * 0x1.921fb54442d18p0;
}

/* The sine of x + |turn| quarter turns.  Below 2^19, r = x - n pi / 2 with pi / 2 in two parts is exact enough.  With
 * z = r^2, |r| <= pi / 4: sin r = r + r^3 P(z), cos r = 1 - z / 2 + z^2 Q(z), each with the digits of r that a float
 * cannot hold. */
INLINE vf sine_vf(vf x, int32_t turn) {
    const vf a = float_bits(magnitude_bits(x));
    const vd wide = double_vf(x);
    vd n = round_vd(wide * 0x1.45f306dc9c883p-1);
    vd exact = (wide - n * 0x1.921fb544p0) - n * 0x1.0b4611a626331p-34;
    if (any_vi(a >= 0x1p19f)) {
        vd m = n;
        const vd far = reduce_large_vd(wide, &m);
        const vl large = (wide >= 0x1p19) | (wide <= -0x1p19);
        exact = select_vd(large, far, exact);
        n = select_vd(large, m, n);
    }
    const vi quarter = int_vl(long_bits(n + 0x1.8p52)) + turn;
    const vf r = float_vd(exact), low = float_vd(exact - double_vf(r)), z = r * r;
    vf p = splat_f(0x1.7c3f94p-19f);
    POLY(p, z, -0x1.a0597ap-13f);
    POLY(p, z, 0x1.111174p-7f);
    POLY(p, z, -0x1.555556p-3f);
    const vf sine = fma_vf(r * z, p, low) + r;
    vf q = splat_f(0x1.99e910p-16f);
    POLY(q, z, -0x1.6c0c2ap-10f);
    POLY(q, z, 0x1.55554ap-5f);
    const vf half = 0.5f * z, near_one = 1.0f - half;
    const vf cosine = near_one + (((1.0f - near_one) - half) + fma_vf(z * z, q, -r * low));
    const vf y = select_vf((quarter & 1) == 0, sine, cosine);
    return select_vf(a < INF, float_bits(int_bits(y) ^ ((quarter & 2) << 30)), x - x);
}

INLINE vf sin_vf(vf x) { return select_vf(x == 0.0f, x, sine_vf(x, 0)); }
SCALAR(sin)

INLINE vf cos_vf(vf x) { return sine_vf(x, 1); }
SCALAR(cos)

/* ---- powers: in double, so that the product of the exponent and the logarithm keeps its digits ---- */

/* a = 2^k m, sqrt(1/2) <= m < sqrt(2), s = (m - 1) / (m + 1);  log a = k ln 2 + 2 (s + s^3/3 + s^5/5 + ..), a finite,
 * > 0. */
INLINE vd log_vd(vd a) {
    const vl k = (long_bits(a) - INT64_C(0x3FE6A09E667F3BCD)) >> 52;
    const vd m = double_bits(long_bits(a) - (k << 52)), s = (m - 1.0) / (m + 1.0), z = s * s;
    vd p = splat_d(1.0 / 19.0);
    UNROLL
    for (int i = 17; i >= 1; i -= 2) p = p * z + 1.0 / i;
    return double_vl(k) * 0x1.62e42fefa39efp-1 + (s + s) * p;
}

/* y = n ln 2 + r;  e^y = 2^n (1 + r + r^2/2 + ..), |y| <= 200. */
INLINE vd exp_vd(vd y) {
    const vd shifter = splat_d(0x1.8p52), t = y * 0x1.71547652b82fep0 + shifter, n = t - shifter;
    const vd r = (y - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    vd p = splat_d(1.0);
    UNROLL
    for (int i = 12; i >= 1; i--) p = p * r * (1.0 / i) + 1.0;
    return p * double_bits((long_bits(t) << 52) + INT64_C(0x3FF0000000000000));
}

/* x^e with C's edge cases, e a constant.  Less than one unit in the last place of f32 away. */
INLINE vf pow_vf(vf x, double e) {
    const int small = e < 0x1p52 && e > -0x1p52, whole = !small || e == (double)(int64_t)e;
    const int odd = small && whole && ((int64_t)e & 1);
    const float of_zero = e > 0 ? 0.0f : INF, of_infinity = e > 0 ? INF : 0.0f;
    const vf a = float_bits(magnitude_bits(x));
    if (e == 0.0) return splat_f(1.0f);
    if (e != e) return splat_f(NOT_A_NUMBER);
    vd y = log_vd(double_vf(select_vf((a > 0.0f) & (a < INF), a, splat_f(1.0f)))) * e;
    y = select_vd(y > 200.0, splat_d(200.0), select_vd(y < -200.0, splat_d(-200.0), y));
    vf r = float_vd(exp_vd(y));
    r = select_vf(a == 1.0f, splat_f(1.0f), r);
    r = select_vf(a == 0.0f, splat_f(of_zero), select_vf(a == INF, splat_f(of_infinity), r));
    if (odd) r = float_bits(int_bits(r) | (int_bits(x) & INT32_MIN));
    if (!whole) r = select_vf((x < 0.0f) & (a < INF), splat_f(NOT_A_NUMBER), r);
    return select_vf(nan_vf(x), x, r);
}
SCALAR_OF(pow, double)

/* ---- remainders: in double, where the product of b and a whole quotient below 2^29 is exact ---- */

/* |x| < 2^51. */
INLINE vd floor_vd(vd x) {
    const vd n = round_vd(x);
    return n - select_vd(n > x, splat_d(1.0), splat_d(0.0));
}

/* a less the multiples of b that have a quotient of 2^26 or more: 24 bits of it at a time, 2^277 being the largest. */
INLINE vd reduce_quotient_vd(vd a, vd b) {
    for (int i = 0; i < 12; i++) {
        const vd q = a / b, high = double_bits(long_bits(q) & INT64_C(-0x20000000));
        a = a - select_vd((q >= 0x1p26) | (q <= -0x1p26), high * b, splat_d(0.0));
    }
    return a;
}

/* a - floor(a / b) b, rounded once.  A quotient below 2^26 that is no whole number is further from one than it is
 * rounded.  A remainder of 0 has the sign of a. */
INLINE vf remainder_vf(vf a, vf b) {
    const vd wide_b = double_vf(b);
    const vf size = float_bits(magnitude_bits(a)), size_b = float_bits(magnitude_bits(b));
    vd rest = double_vf(a);
    if (any_vi(size * 0x1p-25f >= size_b)) rest = reduce_quotient_vd(rest, wide_b);
    const vf y = float_vd(rest - floor_vd(rest / wide_b) * wide_b);
    const vf signed_y = select_vf(y == 0.0f, float_bits(int_bits(a) & INT32_MIN), y);
    const vf far = select_vf((a != 0.0f) & ((a < 0.0f) ^ (b < 0.0f)), b, a); /* of an infinite b */
    return select_vf((size_b == INF) & (size < INF), far, signed_y);
}
SCALAR_PAIR(remainder)

/* ---- stochastic rounding: x to 16 bits, to the neighbour further from zero where u, in [0, 1), is less than the share
 * of the way to it that x has gone.  The last bits of x count that share.  Finite stays finite. ---- */

INLINE vf dithered_bf16_vf(vf x, vf u) {
    const vi size = magnitude_bits(x), sign = int_bits(x) & INT32_MIN, short_size = size & 0x7FFF0000;
    const vi next = short_size + select_vi(u * 0x1p16f < float_vi(size & 0xFFFF), splat_i(0x10000), splat_i(0));
    const vi finite = select_vi(next > 0x7F7F0000, splat_i(0x7F7F0000), next);
    const vi special = select_vi(size > 0x7F800000, short_size | 0x00400000, size);
    return float_bits(select_vi(size < 0x7F800000, finite, special) | sign);
}

/* Below 2^-14 the unit is 2^-24. */
INLINE vf dithered_f16_vf(vf x, vf u) {
    const vi size = magnitude_bits(x), sign = int_bits(x) & INT32_MIN;
    const vi step = select_vi(u * 0x1p13f < float_vi(size & 0x1FFF), splat_i(0x2000), splat_i(0));
    const vi next = (size & 0x7FFFE000) + step, normal = select_vi(next > 0x477FE000, splat_i(0x477FE000), next);
    const vf units = float_bits(size) * 0x1p24f, below = floor_vf(units);
    const vf above = below + select_vf(u < units - below, splat_f(1.0f), splat_f(0.0f));
    const vi finite = select_vi(size < 0x38800000, int_bits(above * 0x1p-24f), normal);
    return float_bits(select_vi(size < 0x7F800000, finite, size) | sign);
}
SCALAR_DITHERED(bf16)
SCALAR_DITHERED(f16)

/* ---- the same to the 8 bits of moments (base/rounding.h): two bits after the point, in 32 or 64 powers of two.  What
 * is larger than all of them becomes the largest; infinities become NaN. ---- */

#define F8M_LEAST 0x32800000 /* the bits of 2^-26 */
#define F8M_MOST 0x42200000  /* of 40 */
#define F8V_LEAST 0x25800000 /* of 2^-52 */
#define F8V_MOST 0x45200000  /* of 2560 */
#define F8_NAN 0x7FC00000

INLINE vi dithered_f8_vf(vf size, vf u) {
    const vi bits = int_bits(size),
             step = select_vi(u * 0x1p21f < float_vi(bits & 0x1FFFFF), splat_i(0x200000), splat_i(0));
    return (bits & 0x7FE00000) + step;
}

/* Of first moments.  What is smaller than 2^-26 becomes that or 0. */
INLINE vf dithered_f8m_vf(vf x, vf u) {
    const vi size = magnitude_bits(x), sign = int_bits(x) & INT32_MIN, next = dithered_f8_vf(float_bits(size), u);
    const vi normal = select_vi(next > F8M_MOST, splat_i(F8M_MOST), next);
    const vi small = select_vi(u < float_bits(size) * 0x1p26f, splat_i(F8M_LEAST), splat_i(0));
    const vi finite = select_vi(size < F8M_LEAST, small, normal);
    return float_bits(select_vi(size < 0x7F800000, finite, splat_i(F8_NAN)) | sign);
}

/* Of second moments.  What is smaller than 2^-52, but not zero, becomes that: a step divides by its root. */
INLINE vf dithered_f8v_vf(vf x, vf u) {
    const vi size = magnitude_bits(x), next = dithered_f8_vf(float_bits(size), u);
    const vi high = select_vi(next > F8V_MOST, splat_i(F8V_MOST), next);
    const vi finite = select_vi(high < F8V_LEAST, splat_i(F8V_LEAST), high);
    const vi seen = select_vi(size < 0x7F800000, finite, splat_i(F8_NAN));
    return float_bits(select_vi(x <= 0.0f, splat_i(0), seen));
}
SCALAR_DITHERED(f8m)
SCALAR_DITHERED(f8v)

/* Codes of numbers that have been rounded, and numbers of codes. */
INLINE vi code_f8m_vf(vf x) {
    const vi size = magnitude_bits(x), code = select_vi(size < 0x7F800000, (size >> 21) - 403, splat_i(127));
    return select_vi(size < F8M_LEAST, splat_i(0), code) | ((int_bits(x) >> 24) & 0x80);
}

INLINE vf number_f8m_vi(vi code) {
    const vi k = code & 0x7F, bits = select_vi(k < 127, (k + 403) << 21, splat_i(F8_NAN));
    return float_bits(select_vi(k > 0, bits, splat_i(0)) | ((code & 0x80) << 24));
}

INLINE vi code_f8v_vf(vf x) {
    const vi size = magnitude_bits(x), code = select_vi(size < 0x7F800000, (size >> 21) - 299, splat_i(255));
    return select_vi(size < F8V_LEAST, splat_i(0), code);
}

INLINE vf number_f8v_vi(vi code) {
    const vi bits = select_vi(code < 255, (code + 299) << 21, splat_i(F8_NAN));
    return float_bits(select_vi(code > 0, bits, splat_i(0)));
}

/* ---- single numbers of double: schedules and bias corrections ---- */

/* x = k pi / 2 + r, |r| <= pi / 4, by three parts of pi / 2; the Taylor series of cos or sin of
 * r.  For schedules: |x| up to 10^5. */
INLINE double cos_f64(double x) {
    const double k = (x * 0x1.45f306dc9c883p-1 + 0x1.8p52) - 0x1.8p52;
    const double r = ((x - k * 0x1.921fb544p0) - k * 0x1.0b4611a6p-34) - k * 0x1.3198a2e037073p-69, z = r * r;
    double cosine = 1.0, sine = 1.0;
    if (!(x < 1e5 && x > -1e5)) return (x - x) / (x - x);
    for (int i = 16; i >= 2; i -= 2) cosine = 1.0 - cosine * z / (i * (i - 1));
    for (int i = 17; i >= 3; i -= 2) sine = 1.0 - sine * z / (i * (i - 1));
    switch ((int64_t)k & 3) {
    case 0: return cosine;
    case 1: return -r * sine;
    case 2: return -cosine;
    default: return r * sine;
    }
}

/* base^e by repeated squaring, lowest bit first; 1 for e <= 0. */
INLINE double power_f64(double base, int64_t e) {
    double r = 1.0;
    for (; e > 0; e >>= 1, base *= base)
        if (e & 1) r *= base;
    return r;
}
