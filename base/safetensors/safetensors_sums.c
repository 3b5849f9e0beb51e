/* safetensors_sums.c: see safetensors_sums.h. */
#include "base/safetensors/safetensors_sums.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *amp_sum_write(char out[AMP_SUM_TEXT], uint64_t sum) {
    static const char hex[] = "0123456789abcdef";
    for (int i = AMP_SUM_TEXT - 2; i >= 0; i--, sum >>= 4) out[i] = hex[sum & 15];
    out[AMP_SUM_TEXT - 1] = '\0';
    return out;
}

bool amp_sum_read(const char *text, uint64_t *sum) {
    char again[AMP_SUM_TEXT];
    *sum = 0;
    for (const char *c = text; *c; c++) *sum = *sum << 4 | (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10) % 16;
    return !strcmp(text, amp_sum_write(again, *sum));
}

void amp_tensor_sum_begin(amp_xxh64 *sum, const char *dtype_name, const amp_tensor_view *v) {
    char dim[24];
    amp_xxh64_init(sum);
    amp_xxh64_update(sum, dtype_name, strlen(dtype_name));
    for (int32_t i = 0; i < v->rank; i++)
        amp_xxh64_update(sum, dim, (size_t)snprintf(dim, sizeof dim, " %lld", (long long)v->dims[i]));
    amp_xxh64_update(sum, "\n", 1);
}

/* As the writer of JSON puts it (base/json.c). */
static void add_text(amp_xxh64 *sum, const char *text) {
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        n = utf8_char_len(text, left);
        if (n) amp_xxh64_update(sum, text, n);
        else amp_xxh64_update(sum, "\xEF\xBF\xBD", 3);
        n += !n;
    }
    amp_xxh64_update(sum, "", 1);
}

uint64_t amp_metadata_sum(const char *key, const char *value) {
    amp_xxh64 sum;
    if (strncmp(key, "amp.", 4) || !strcmp(key, AMP_SUM_KEY)) return 0;
    amp_xxh64_init(&sum);
    add_text(&sum, key);
    add_text(&sum, value);
    return amp_xxh64_final(&sum);
}
