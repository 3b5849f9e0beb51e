/* words.h: the words of the language that no text declares, and a sentence on each. */
#ifndef AMP_TOOLS_AMPC_LSP_WORDS_H
#define AMP_TOOLS_AMPC_LSP_WORDS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum WordPlace {
    WORD_DECLARES,  /* begins a line outside of braces */
    WORD_BEGINS,    /* begins a line inside of them */
    WORD_INSIDE,    /* of expressions */
    WORD_CALLED,    /* a function of sizes */
    WORD_PRECISION, /* after `precision` */
    WORD_SETS       /* what a precision or train block sets: loss_scale = ... */
} WordPlace;

typedef struct LanguageWord {
    const char *name;
    WordPlace place;
    const char *about;
} LanguageWord;

const LanguageWord *language_word(size_t index);                         /* NULL past the last */
const LanguageWord *language_word_find(const char *name, size_t length); /* NULL: it is none */
bool language_word_char(char c);                                         /* of a word, or of a name */

#endif
