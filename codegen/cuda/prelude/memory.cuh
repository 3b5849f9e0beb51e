/* memory.cuh: elements in memory.  get and put move one; load and store move V neighbours, in accesses of up to 16
 * bytes: the first is at a multiple of their size. */

INLINE float get_f32(const float *p) { return *p; }
INLINE void put_f32(float *p, float x) { *p = x; }

/* A store as f16 rounds.  A value that is stored as bf16 has been rounded to it. */
INLINE float get_f16(const uint16_t *p) { return f32_of_f16(*p); }
INLINE void put_f16(uint16_t *p, float x) { *p = f16_of_f32(x); }

INLINE float get_bf16(const uint16_t *p) { return f32_of_bf16(*p); }
INLINE void put_bf16(uint16_t *p, float x) { *p = bf16_bits(x); }

INLINE int32_t get_i32(const int32_t *p) { return *p; }
INLINE void put_i32(int32_t *p, int32_t x) { *p = x; }

INLINE int32_t get_bool(const int32_t *p) { return *p != 0; }
INLINE void put_bool(int32_t *p, int32_t x) { *p = x != 0; }

INLINE int32_t get_u8(const uint8_t *p) { return *p; }
INLINE void put_u8(uint8_t *p, int32_t x) { *p = (uint8_t)x; }

INLINE int64_t get_i64(const int64_t *p) { return *p; }
INLINE void put_i64(int64_t *p, int64_t x) { *p = x; }

INLINE double get_f64(const double *p) { return *p; }
INLINE void put_f64(double *p, double x) { *p = x; }

/* ---- words of 1, 2 or 4 x 32 bits ---- */

INLINE void load_words(uint32_t (&w)[1], const void *p) { w[0] = *(const uint32_t *)p; }
INLINE void load_words(uint32_t (&w)[2], const void *p) {
    const uint2 v = *(const uint2 *)p;
    w[0] = v.x, w[1] = v.y;
}

template <int W> INLINE void load_words(uint32_t (&w)[W], const void *p) {
    static_assert(W % 4 == 0, "");
    UNROLL
    for (int i = 0; i < W; i += 4) {
        const uint4 v = ((const uint4 *)p)[i / 4];
        w[i] = v.x, w[i + 1] = v.y, w[i + 2] = v.z, w[i + 3] = v.w;
    }
}

/* To global memory.  NVRTC would cut a vector that is assigned into words. */
INLINE void store_words(void *p, const uint32_t (&w)[1]) { *(uint32_t *)p = w[0]; }
INLINE void store_words(void *p, const uint32_t (&w)[2]) {
    asm("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "r"(w[0]), "r"(w[1]) : "memory");
}
template <int W> INLINE void store_words(void *p, const uint32_t (&w)[W]) {
    static_assert(W % 4 == 0, "");
    UNROLL
    for (int i = 0; i < W; i += 4)
        asm("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global((char *)p + i * 4)), "r"(w[i]),
            "r"(w[i + 1]), "r"(w[i + 2]), "r"(w[i + 3])
            : "memory");
}

/* Zeros where |here| is false. */
template <int W> INLINE void load_words_if(uint32_t (&w)[W], const void *p, bool here) {
    UNROLL
    for (int i = 0; i < W; i++) w[i] = 0;
    if (here) load_words(w, p);
}

/* ---- V neighbours ---- */

template <int V> INLINE void load_f32(float (&x)[V], const float *p) {
    uint32_t w[V];
    load_words(w, p);
    UNROLL
    for (int i = 0; i < V; i++) x[i] = float_of(w[i]);
}

template <int V> INLINE void load_i32(int32_t (&x)[V], const int32_t *p) {
    uint32_t w[V];
    load_words(w, p);
    UNROLL
    for (int i = 0; i < V; i++) x[i] = (int32_t)w[i];
}

template <int V> INLINE void load_bool(int32_t (&x)[V], const int32_t *p) {
    load_i32(x, p);
    UNROLL
    for (int i = 0; i < V; i++) x[i] = x[i] != 0;
}

template <int V> INLINE void words_f32(uint32_t (&w)[V], const float (&x)[V]) {
    UNROLL
    for (int i = 0; i < V; i++) w[i] = bits_of(x[i]);
}

template <int V> INLINE void store_f32(float *p, const float (&x)[V]) {
    uint32_t w[V];
    words_f32(w, x);
    store_words(p, w);
}

template <int V> INLINE void store_i32(int32_t *p, const int32_t (&x)[V]) {
    uint32_t w[V];
    UNROLL
    for (int i = 0; i < V; i++) w[i] = (uint32_t)x[i];
    store_words(p, w);
}

template <int V> INLINE void store_bool(int32_t *p, const int32_t (&x)[V]) {
    uint32_t w[V];
    UNROLL
    for (int i = 0; i < V; i++) w[i] = x[i] != 0;
    store_words(p, w);
}

/* Two elements of a word.  Loads with |here|: zeros where it is false; several of them do not wait for one another, for
 * what is branched around is the access alone. */
#define DEFINE_16(name, get, put, to_f32, pack)                                                                        \
    template <int V, int W> INLINE void numbers_##name(float(&x)[V], const uint32_t(&w)[W]) {                          \
        UNROLL                                                                                                         \
        for (int i = 0; i < V; i++) x[i] = to_f32((uint16_t)(w[i / 2] >> (i % 2 * 16)));                               \
    }                                                                                                                  \
    template <int V> INLINE void load_##name(float(&x)[V], const uint16_t *p) {                                        \
        if constexpr (V == 1) x[0] = get(p);                                                                           \
        else {                                                                                                         \
            uint32_t w[V / 2];                                                                                         \
            load_words(w, p);                                                                                          \
            numbers_##name(x, w);                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    template <int V> INLINE void load_if_##name(float(&x)[V], const uint16_t *p, bool here) {                          \
        if constexpr (V == 1) x[0] = here ? get(p) : 0.0f;                                                             \
        else {                                                                                                         \
            uint32_t w[V / 2];                                                                                         \
            load_words_if(w, p, here);                                                                                 \
            numbers_##name(x, w);                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    template <int W, int V> INLINE void words_##name(uint32_t(&w)[W], const float(&x)[V]) {                            \
        UNROLL                                                                                                         \
        for (int i = 0; i < W; i++) w[i] = pack(x[2 * i], x[2 * i + 1]);                                               \
    }                                                                                                                  \
    template <int V> INLINE void store_##name(uint16_t *p, const float(&x)[V]) {                                       \
        if constexpr (V == 1) put(p, x[0]);                                                                            \
        else {                                                                                                         \
            uint32_t w[V / 2];                                                                                         \
            words_##name(w, x);                                                                                        \
            store_words(p, w);                                                                                         \
        }                                                                                                              \
    }

DEFINE_16(f16, get_f16, put_f16, f32_of_f16, pack_f16)

DEFINE_16(bf16, get_bf16, put_bf16, f32_of_bf16, pack_bf16)

/* Elements that are not worth wide accesses: u8 below four, i64 and f64. */
template <int V> INLINE void load_u8(int32_t (&x)[V], const uint8_t *p) {
    if constexpr (V < 4) {
        for (int i = 0; i < V; i++) x[i] = p[i];
    } else {
        uint32_t w[V / 4];
        load_words(w, p);
        UNROLL
        for (int i = 0; i < V; i++) x[i] = (int32_t)(w[i / 4] >> (i % 4 * 8) & 0xFFu);
    }
}

template <int V> INLINE void store_u8(uint8_t *p, const int32_t (&x)[V]) {
    if constexpr (V < 4) {
        for (int i = 0; i < V; i++) p[i] = (uint8_t)x[i];
    } else {
        uint32_t w[V / 4] = {};
        UNROLL
        for (int i = 0; i < V; i++) w[i / 4] |= (uint32_t)(uint8_t)x[i] << (i % 4 * 8);
        store_words(p, w);
    }
}

/* Moments of 8 bits, with the codes of functions.h. */
#define DEFINE_F8(name, number, code)                                                                                  \
    INLINE float get_##name(const uint8_t *p) { return number(*p); }                                                   \
    INLINE void put_##name(uint8_t *p, float x) { *p = (uint8_t)code(x); }                                             \
    template <int V> INLINE void load_##name(float(&x)[V], const uint8_t *p) {                                         \
        int32_t codes[V];                                                                                              \
        load_u8(codes, p);                                                                                             \
        UNROLL                                                                                                         \
        for (int i = 0; i < V; i++) x[i] = number(codes[i]);                                                           \
    }                                                                                                                  \
    template <int V> INLINE void store_##name(uint8_t *p, const float(&x)[V]) {                                        \
        int32_t codes[V];                                                                                              \
        UNROLL                                                                                                         \
        for (int i = 0; i < V; i++) codes[i] = code(x[i]);                                                             \
        store_u8(p, codes);                                                                                            \
    }

DEFINE_F8(f8m, number_f8m_i32, code_f8m_f32)

DEFINE_F8(f8v, number_f8v_i32, code_f8v_f32)

#define DEFINE_64(name, type)                                                                                          \
    template <int V> INLINE void load_##name(type(&x)[V], const type *p) {                                             \
        UNROLL                                                                                                         \
        for (int i = 0; i < V; i++) x[i] = p[i];                                                                       \
    }                                                                                                                  \
    template <int V> INLINE void store_##name(type *p, const type(&x)[V]) {                                            \
        UNROLL                                                                                                         \
        for (int i = 0; i < V; i++) p[i] = x[i];                                                                       \
    }

DEFINE_64(i64, int64_t)

DEFINE_64(f64, double)

/* The last V of an array, or of a row, may be fewer: the others are 0, and not stored.  each: V that stand anywhere. */
#define DEFINE_PART(name, get, put, element, type)                                                                     \
    template <int V> INLINE void load_each_##name(type(&x)[V], const element *p, int64_t left) {                       \
        UNROLL                                                                                                         \
        for (int i = 0; i < V; i++) x[i] = i < left ? get(p + i) : (type)0;                                            \
    }                                                                                                                  \
    template <int V> INLINE void store_each_##name(element *p, const type(&x)[V], int64_t left) {                      \
        UNROLL                                                                                                         \
        for (int i = 0; i < V; i++)                                                                                    \
            if (i < left) put(p + i, x[i]);                                                                            \
    }                                                                                                                  \
    template <int V> INLINE void load_##name(type(&x)[V], const element *p, int64_t left) {                            \
        if (left >= V) load_##name(x, p);                                                                              \
        else load_each_##name(x, p, left);                                                                             \
    }                                                                                                                  \
    template <int V> INLINE void store_##name(element *p, const type(&x)[V], int64_t left) {                           \
        if (left >= V) store_##name(p, x);                                                                             \
        else store_each_##name(p, x, left);                                                                            \
    }

DEFINE_PART(f32, get_f32, put_f32, float, float)

DEFINE_PART(f16, get_f16, put_f16, uint16_t, float)

DEFINE_PART(bf16, get_bf16, put_bf16, uint16_t, float)

DEFINE_PART(i32, get_i32, put_i32, int32_t, int32_t)

DEFINE_PART(bool, get_bool, put_bool, int32_t, int32_t)

DEFINE_PART(u8, get_u8, put_u8, uint8_t, int32_t)

DEFINE_PART(f8m, get_f8m, put_f8m, uint8_t, float)

DEFINE_PART(f8v, get_f8v, put_f8v, uint8_t, float)

DEFINE_PART(i64, get_i64, put_i64, int64_t, int64_t)

DEFINE_PART(f64, get_f64, put_f64, double, double)

#define DEFINE_IF(name, load, element, type)                                                                           \
    template <int V> INLINE void load_if_##name(type(&x)[V], const element *p, bool here) {                            \
        UNROLL                                                                                                         \
        for (int i = 0; i < V; i++) x[i] = (type)0;                                                                    \
        if (here) load(x, p);                                                                                          \
    }

DEFINE_IF(f32, load_f32, float, float)

DEFINE_IF(i32, load_i32, int32_t, int32_t)

DEFINE_IF(bool, load_bool, int32_t, int32_t)

DEFINE_IF(u8, load_u8, uint8_t, int32_t)

DEFINE_IF(f8m, load_f8m, uint8_t, float)

DEFINE_IF(f8v, load_f8v, uint8_t, float)

DEFINE_IF(i64, load_i64, int64_t, int64_t)

DEFINE_IF(f64, load_f64, double, double)

/* ---- places ---- */

/* a / b and a % b of numbers that are not negative: in 32 bits where they fit. */
INLINE int64_t quotient(int64_t a, int64_t b) {
    return (uint64_t)(a | b) >> 32 ? a / b : (int64_t)((uint32_t)a / (uint32_t)b);
}

INLINE int64_t modulo(int64_t a, int64_t b) {
    return (uint64_t)(a | b) >> 32 ? a % b : (int64_t)((uint32_t)a % (uint32_t)b);
}

/* In a launch over a batch: which member block |block| works on, and which of the member's blocks it is. |elements| of
 * each of |members|, |per| of a block.  Each warp looks at 32 members at a time. */
INLINE int find_member(const int64_t *elements, int members, int64_t per, int64_t *block) {
    const int lane = threadIdx.x & 31;
    for (int first = 0;; first += 32) {
        const int64_t mine = first + lane < members ? (elements[first + lane] + per - 1) / per : 0;
        int64_t end = mine; /* blocks up to and with this lane's member */
        UNROLL
        for (int d = 1; d < 32; d *= 2) {
            const int64_t before = __shfl_up_sync(0xFFFFFFFFu, end, d);
            if (lane >= d) end += before;
        }
        const uint32_t beyond = __ballot_sync(0xFFFFFFFFu, *block < end);
        if (beyond || first + 32 >= members) {
            const int found = beyond ? __ffs((int)beyond) - 1 : 0;
            *block -= __shfl_sync(0xFFFFFFFFu, end - mine, found);
            return first + found;
        }
        *block -= __shfl_sync(0xFFFFFFFFu, end, 31);
    }
}
