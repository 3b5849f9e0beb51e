// counted_new.h: operator new counts its calls.
#ifndef AMP_TESTS_BINDINGS_COUNTED_NEW_H
#define AMP_TESTS_BINDINGS_COUNTED_NEW_H

extern long allocations;

#endif
