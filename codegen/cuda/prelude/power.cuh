/* power.cuh: powers and cosines in double. */

/* a = 2^k m, sqrt(1/2) <= m < sqrt(2), s = (m - 1) / (m + 1);  log a = k ln 2 + 2 (s + s^3/3 + s^5/5 + ..), a finite, > 0. */
INLINE double log_f64(double a) {
    const int64_t bits = __double_as_longlong(a), k = (bits - INT64_C(0x3FE6A09E667F3BCD)) >> 52;
    const double m = __longlong_as_double(bits - (int64_t)((uint64_t)k << 52)), s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 19.0;
    UNROLL
    for (int i = 17; i >= 1; i -= 2) p = p * z + 1.0 / i;
    return (double)k * 0x1.62e42fefa39efp-1 + (s + s) * p;
}

/* y = n ln 2 + r;  e^y = 2^n (1 + r + r^2/2 + ..), |y| <= 200. */
INLINE double exp_f64(double y) {
    const double shifter = 0x1.8p52, t = y * 0x1.71547652b82fep0 + shifter, n = t - shifter;
    const double r = (y - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    double p = 1.0;
    UNROLL
    for (int i = 12; i >= 1; i--) p = p * r * (1.0 / i) + 1.0;
    return p * __longlong_as_double((int64_t)((uint64_t)__double_as_longlong(t) << 52) + INT64_C(0x3FF0000000000000));
}

/* x^e with C's edge cases, e a constant.  Less than one unit in the last place of f32 away. */
INLINE float pow_f32(float x, double e) {
    const bool small = e < 0x1p52 && e > -0x1p52, whole = !small || e == (double)(int64_t)e;
    const bool odd = small && whole && ((int64_t)e & 1);
    const float a = abs_f32(x);
    if (e == 0.0) return 1.0f;
    if (e != e) return NOT_A_NUMBER;
    const bool plain = a > 0.0f && a < INF;
    double y = log_f64(plain ? (double)a : 1.0) * e;
    y = y > 200.0 ? 200.0 : y < -200.0 ? -200.0 : y;
    float r = (float)exp_f64(y);
    if (a == 1.0f) r = 1.0f;
    if (a == 0.0f) r = e > 0 ? 0.0f : INF;
    if (a == INF) r = e > 0 ? INF : 0.0f;
    if (odd) r = float_of(bits_of(r) | (bits_of(x) & 0x80000000u));
    if (!whole && plain && x < 0.0f) r = NOT_A_NUMBER;
    return x != x ? x : r;
}

/* x = k pi / 2 + r, |r| <= pi / 4, by three parts of pi / 2; the Taylor series of cos or sin of r.  For schedules: |x| up to 10^5. */
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
