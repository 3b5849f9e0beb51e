/* hash.c: see hash.h. SHA-256 is section 6.2 of FIPS 180-4. */
#include "base/hash.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/processor.h"

/* Offset basis and prime of FNV (draft-eastlake-fnv, section 5). */
uint32_t amp_hash32(const char *path) {
    uint32_t hash = 0x811C9DC5;
    for (; *path; path++) hash = (hash ^ (uint8_t)*path) * 0x01000193u;
    return hash;
}

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes (section 4.2.2). */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* Square roots of the first 8 primes (section 5.3.3). */
static const uint32_t initial_state[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t load_be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be32(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 24), p[1] = (uint8_t)(v >> 16), p[2] = (uint8_t)(v >> 8), p[3] = (uint8_t)v;
}

/* The message schedule W (section 6.2.2, step 1). */
static void expand(const uint8_t block[64], uint32_t w[64]) {
    for (int t = 0; t < 16; t++) w[t] = load_be32(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
}

static void compress_plainly(uint32_t state[8], const uint8_t block[64]) {
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    expand(block, w);
    for (int t = 0; t < 64; t++) {
        uint32_t big1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25), choose = (e & f) ^ (~e & g);
        uint32_t big0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22), majority = (a & b) ^ (a & c) ^ (b & c);
        uint32_t t1 = h + big1 + choose + round_constants[t] + w[t], t2 = big0 + majority;
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

/* Intel's instructions (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2): two rounds each, with
 * the state as A, B, E, F and C, D, G, H; the schedule's four words at a time. */
#if defined(__x86_64__)
__attribute__((target("sha,sse4.1"))) static void compress_by_sha(uint32_t state[8], const uint8_t *data,
                                                                  size_t blocks) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    const __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0), w[4];
    for (; blocks; blocks--, data += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i *now = &w[i & 3], sum;
            if (i < 4) *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + i), swap);
            else
                *now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) & 3]),
                                                          _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4)),
                                            w[(i + 3) & 3]);
            sum = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)round_constants + i));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

void amp_sha256_blocks(uint32_t state[8], const uint8_t *data, size_t blocks, unsigned features) {
#if defined(__x86_64__)
    if (features & AMP_CPU_SHA) {
        compress_by_sha(state, data, blocks);
        return;
    }
#endif
    (void)features;
    for (; blocks; blocks--, data += 64) compress_plainly(state, data);
}

void amp_sha256_init(amp_sha256 *s) {
    memset(s, 0, sizeof *s);
    memcpy(s->state, initial_state, sizeof s->state);
    s->features = amp_cpu_features();
}

void amp_sha256_update(amp_sha256 *s, const void *data, size_t size) {
    const uint8_t *p = data;
    size_t held = s->length % sizeof s->block;
    s->length += size;
    if (size == 0) return;
    if (held) {
        size_t take = sizeof s->block - held < size ? sizeof s->block - held : size;
        memcpy(s->block + held, p, take);
        p += take, size -= take;
        if (held + take < sizeof s->block) return;
        amp_sha256_blocks(s->state, s->block, 1, s->features);
    }
    size_t blocks = size / sizeof s->block;
    if (blocks) amp_sha256_blocks(s->state, p, blocks, s->features);
    p += blocks * sizeof s->block, size %= sizeof s->block;
    if (size) memcpy(s->block, p, size);
}

/* Padding (section 5.1.1): a one bit, zeros, and the length in bits, to a whole block. */
void amp_sha256_final(amp_sha256 *s, uint8_t out[32]) {
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = s->length * 8;
    size_t held = s->length % sizeof s->block;
    uint8_t length[8];
    amp_sha256_update(s, padding, (held < 56 ? 56 : 120) - held);
    store_be32(length, (uint32_t)(bits >> 32));
    store_be32(length + 4, (uint32_t)bits);
    amp_sha256_update(s, length, sizeof length);
    for (int i = 0; i < 8; i++) store_be32(out + 4 * i, s->state[i]);
}

void amp_sha256_of(const void *data, size_t size, uint8_t out[32]) {
    amp_sha256 s;
    amp_sha256_init(&s);
    amp_sha256_update(&s, data, size);
    amp_sha256_final(&s, out);
}

void amp_sha256_hex(const uint8_t digest[32], char out[65]) {
    static const char hex[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        out[2 * i] = hex[digest[i] >> 4];
        out[2 * i + 1] = hex[digest[i] & 15];
    }
    out[64] = '\0';
}

/* ---- XXH64 ------------------------------------------------------------------------------------------------------- */

static const uint64_t prime1 = 0x9E3779B185EBCA87, prime2 = 0xC2B2AE3D27D4EB4F, prime3 = 0x165667B19E3779F9,
                      prime4 = 0x85EBCA77C2B2AE63, prime5 = 0x27D4EB2F165667C5;

static uint64_t rotl64(uint64_t x, int n) { return x << n | x >> (64 - n); }

/* The processors that this runs on are little-endian, as the algorithm is. */
static uint64_t load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t load32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t add_lane(uint64_t lane, uint64_t word) { return rotl64(lane + word * prime2, 31) * prime1; }

static void add_blocks(uint64_t lanes[4], const uint8_t *p, size_t blocks) {
    uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
    for (; blocks; blocks--, p += 32) {
        a = add_lane(a, load64(p)), b = add_lane(b, load64(p + 8));
        c = add_lane(c, load64(p + 16)), d = add_lane(d, load64(p + 24));
    }
    lanes[0] = a, lanes[1] = b, lanes[2] = c, lanes[3] = d;
}

void amp_xxh64_init(amp_xxh64 *h) { *h = (amp_xxh64){.lanes = {prime1 + prime2, prime2, 0, 0 - prime1}}; }

void amp_xxh64_update(amp_xxh64 *h, const void *data, size_t size) {
    const uint8_t *p = data;
    size_t held = h->length % sizeof h->block;
    h->length += size;
    if (size == 0) return;
    if (held) {
        size_t take = sizeof h->block - held < size ? sizeof h->block - held : size;
        memcpy(h->block + held, p, take);
        p += take, size -= take;
        if (held + take < sizeof h->block) return;
        add_blocks(h->lanes, h->block, 1);
    }
    size_t blocks = size / sizeof h->block;
    add_blocks(h->lanes, p, blocks);
    p += blocks * sizeof h->block, size %= sizeof h->block;
    if (size) memcpy(h->block, p, size);
}

static uint64_t join_lanes(const uint64_t lanes[4]) {
    uint64_t sum = rotl64(lanes[0], 1) + rotl64(lanes[1], 7) + rotl64(lanes[2], 12) + rotl64(lanes[3], 18);
    for (int i = 0; i < 4; i++) sum = (sum ^ add_lane(0, lanes[i])) * prime1 + prime4;
    return sum;
}

uint64_t amp_xxh64_final(const amp_xxh64 *h) {
    const uint8_t *p = h->block;
    size_t left = h->length % sizeof h->block;
    uint64_t sum = (h->length < sizeof h->block ? prime5 : join_lanes(h->lanes)) + h->length;
    for (; left >= 8; left -= 8, p += 8) sum = rotl64(sum ^ add_lane(0, load64(p)), 27) * prime1 + prime4;
    for (; left >= 4; left -= 4, p += 4) sum = rotl64(sum ^ load32(p) * prime1, 23) * prime2 + prime3;
    for (; left; left--, p++) sum = rotl64(sum ^ *p * prime5, 11) * prime1;
    sum = (sum ^ sum >> 33) * prime2;
    sum = (sum ^ sum >> 29) * prime3;
    return sum ^ sum >> 32;
}
