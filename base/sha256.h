/* sha256.h: FIPS 180-4. */
#ifndef AMP_BASE_SHA256_H
#define AMP_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
} amp_sha256;

void amp_sha256_init(amp_sha256 *s);
void amp_sha256_update(amp_sha256 *s, const void *data, size_t size);
void amp_sha256_final(amp_sha256 *s, uint8_t out[32]);
void amp_sha256_of(const void *data, size_t size, uint8_t out[32]);
void amp_sha256_hex(const uint8_t digest[32], char out[65]);

#ifdef __cplusplus
}
#endif

#endif
