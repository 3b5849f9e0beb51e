/* hash.h: FNV-1a for names, SHA-256 (FIPS 180-4) for files, XXH64 for data that may be damaged. */
#ifndef AMP_BASE_HASH_H
#define AMP_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 32-bit FNV-1a: name tables, and the first word of a random counter (random.h). */
uint32_t amp_hash32(const char *name);

typedef struct amp_sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
    unsigned features; /* of the processor (processor.h) */
} amp_sha256;

void amp_sha256_init(amp_sha256 *s);
void amp_sha256_update(amp_sha256 *s, const void *data, size_t size);
void amp_sha256_final(amp_sha256 *s, uint8_t out[32]);
void amp_sha256_of(const void *data, size_t size, uint8_t out[32]);
/* What the others do, on |blocks| of 64 bytes, by no more than the AMP_CPU_* of |features| (processor.h). */
void amp_sha256_blocks(uint32_t state[8], const uint8_t *data, size_t blocks, unsigned features);
void amp_sha256_hex(const uint8_t digest[32], char out[65]);

/* XXH64 with seed 0 (https://github.com/Cyan4973/xxHash, "XXH64 algorithm description"): damage passes with a chance of
 * 2^-64, at the speed of memory on every processor.  No help against those who mean to deceive. */
typedef struct amp_xxh64 {
    uint64_t lanes[4];
    uint64_t length;
    uint8_t block[32];
} amp_xxh64;

void amp_xxh64_init(amp_xxh64 *h);
void amp_xxh64_update(amp_xxh64 *h, const void *data, size_t size);
uint64_t amp_xxh64_final(const amp_xxh64 *h);

#ifdef __cplusplus
}
#endif

#endif
