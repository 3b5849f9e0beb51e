/* sentences.c: pairs of sentences, a statement and a remark on its subject, whose pronoun agrees with the subject (0),
 * or differs from it in number (1), or in gender alone (2).
 *
 *     sentences SAMPLES SEED FILE.safetensors [types|mask]
 *
 *     the old king saw the girls near the river / suddenly he followed the boys      0
 *     the old king saw the girls near the river / suddenly they followed the boys    1
 *     the old king saw the girls near the river / suddenly she followed the boys     2
 *
 * Either sentence may come first, and both have nouns and may have pronouns, so that the token types alone tell which
 * is which; after a pair there are words of another one, as in a buffer that is used again, so that the mask alone
 * shows where it ends.  A last word replaces the types by zeros, or the mask by ones, to show what they are worth.
 * The first three pairs are printed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { T = 20, GENDERS = 4, PLURAL = 3 };
enum { AGREES, WRONG_NUMBER, WRONG_GENDER };
enum { CLS, THE, ADJECTIVES, ADVERBS, VERBS, PREPOSITIONS, PRONOUNS, NOUNS, KINDS = NOUNS + GENDERS };

static const char *const words[KINDS] = {
    [CLS] = "[CLS]",
    [THE] = "the",
    [ADJECTIVES] = "old young tall small happy sad rich poor",
    [ADVERBS] = "quietly slowly suddenly then later often soon gladly",
    [VERBS] = "saw heard met followed helped watched left found",
    [PREPOSITIONS] = "near behind beside below above without",
    [PRONOUNS] = "he she it they", /* one for each of the four kinds of nouns */
    [NOUNS] = "man boy king uncle brother monk prince father",
    "woman girl queen aunt sister nun princess mother",
    "letter river house tree book ship bridge garden",
    "men boys kings girls queens sisters houses books",
};

typedef struct Pair {
    int32_t ids[T], types[T], mask[T];
    int32_t used;
} Pair;

static uint64_t state;

/* One of |count| numbers: splitmix64 (Steele, Lea and Flood 2014). */
static int draw(int count) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int)((z ^ (z >> 31)) % (uint64_t)count);
}

/* ---- words and their ids ----------------------------------------------------------------------------------------- */

static int count_of(int kind) {
    int count = 1;
    for (const char *c = words[kind]; *c; c++) count += *c == ' ';
    return count;
}

static int32_t first_of(int kind) {
    int32_t first = 0;
    for (int k = 0; k < kind; k++) first += count_of(k);
    return first;
}

static void print_word(int32_t id) {
    int kind = 0;
    while (kind + 1 < KINDS && id >= first_of(kind + 1)) kind++;
    const char *word = words[kind];
    for (int32_t i = first_of(kind); i < id; i++) word = strchr(word, ' ') + 1;
    printf("%.*s ", (int)strcspn(word, " "), word);
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static void say(Pair *p, int type, int kind, int which) {
    if (p->used == T) return;
    p->types[p->used] = type;
    p->ids[p->used++] = first_of(kind) + which;
}

static void any(Pair *p, int type, int kind) { say(p, type, kind, draw(count_of(kind))); }

static void thing(Pair *p, int type, int gender) {
    say(p, type, THE, 0);
    if (draw(2)) any(p, type, ADJECTIVES);
    any(p, type, NOUNS + gender);
}

/* the tall girl saw him near the river */
static void statement(Pair *p, int gender) {
    thing(p, 0, gender);
    any(p, 0, VERBS);
    if (draw(3)) thing(p, 0, draw(GENDERS));
    else any(p, 0, PRONOUNS);
    if (draw(3)) return;
    any(p, 0, PREPOSITIONS);
    say(p, 0, THE, 0);
    any(p, 0, NOUNS + draw(GENDERS));
}

/* quietly she read the letter */
static void remark(Pair *p, int gender) {
    if (draw(2)) any(p, 1, ADVERBS);
    say(p, 1, PRONOUNS, gender);
    any(p, 1, VERBS);
    if (draw(2)) return;
    say(p, 1, THE, 0);
    any(p, 1, NOUNS + draw(GENDERS));
}

static void both(Pair *p, int gender, int spoken_of) {
    int remark_first = draw(2);
    if (remark_first) remark(p, spoken_of);
    statement(p, gender);
    if (!remark_first) remark(p, spoken_of);
}

static int32_t make(Pair *p) {
    int gender = draw(GENDERS), spoken_of = draw(5) < 2 ? gender : (gender + 1 + draw(GENDERS - 1)) % GENDERS;
    memset(p, 0, sizeof *p);
    say(p, 0, CLS, 0);
    both(p, gender, spoken_of);
    for (int i = 0; i < p->used; i++) p->mask[i] = 1;
    while (p->used < T) both(p, draw(GENDERS), draw(GENDERS)); /* what the mask hides */
    return gender == spoken_of ? AGREES : (gender == PLURAL) != (spoken_of == PLURAL) ? WRONG_NUMBER : WRONG_GENDER;
}

static void show(const Pair *p, int32_t target) {
    for (int i = 1; i < T && p->mask[i]; i++) {
        if (p->types[i] != p->types[i - 1] && i > 1) printf("/ ");
        print_word(p->ids[i]);
    }
    printf("-> %d\n", (int)target);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* safetensors: eight bytes that count the header, the header in JSON, the arrays one after another. */
static int write_arrays(const char *path, int32_t *const arrays[4], int samples) {
    char header[500];
    size_t each = sizeof(int32_t) * T * (size_t)samples;
    int length = snprintf(header, sizeof header,
                          "{\"input_ids\":{\"dtype\":\"I32\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]},"
                          "\"token_type_ids\":{\"dtype\":\"I32\",\"shape\":[%d,%d],\"data_offsets\":[%zu,%zu]},"
                          "\"attention_mask\":{\"dtype\":\"I32\",\"shape\":[%d,%d],\"data_offsets\":[%zu,%zu]},"
                          "\"targets\":{\"dtype\":\"I32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}}",
                          samples, T, each, samples, T, each, 2 * each, samples, T, 2 * each, 3 * each, samples,
                          3 * each, 3 * each + each / T);
    FILE *file = fopen(path, "wb");
    if (!file) return perror(path), 1;
    for (int i = 0; i < 8; i++) putc(i < 4 ? length >> 8 * i & 255 : 0, file); /* little-endian */
    fwrite(header, 1, (size_t)length, file);
    for (int a = 0; a < 4; a++) fwrite(arrays[a], 1, a < 3 ? each : each / T, file);
    int failed = ferror(file);
    if (fclose(file) || failed) return perror(path), 1;
    return 0;
}

int main(int argc, char **argv) {
    int samples = argc > 3 ? atoi(argv[1]) : 0, blind = argc == 5;
    if (argc < 4 || argc > 5 || samples < 1 || samples > 10000000 ||
        (blind && strcmp(argv[4], "types") && strcmp(argv[4], "mask")))
        return fprintf(stderr, "usage: sentences SAMPLES SEED FILE.safetensors [types|mask]\n"), 2;
    state = strtoull(argv[2], NULL, 10);
    int32_t *arrays[4];
    for (int a = 0; a < 4; a++)
        if (!(arrays[a] = malloc(sizeof(int32_t) * T * (size_t)samples)))
            return fprintf(stderr, "sentences: out of memory\n"), 1;
    for (int i = 0; i < samples; i++) {
        Pair p;
        arrays[3][i] = make(&p);
        if (i < 3) show(&p, arrays[3][i]);
        if (blind)
            for (int k = 0; k < T; k++) *(argv[4][0] == 't' ? &p.types[k] : &p.mask[k]) = argv[4][0] != 't';
        memcpy(arrays[0] + T * i, p.ids, sizeof p.ids);
        memcpy(arrays[1] + T * i, p.types, sizeof p.types);
        memcpy(arrays[2] + T * i, p.mask, sizeof p.mask);
    }
    int failed = write_arrays(argv[3], arrays, samples);
    for (int a = 0; a < 4; a++) free(arrays[a]);
    return failed;
}
