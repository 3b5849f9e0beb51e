/* amp/version.h: the version of the libraries and of the models that the compiler makes. */
#ifndef AMP_VERSION_H
#define AMP_VERSION_H

#define AMP_VERSION "0.1.0"

/* The same as numbers, for #if: `#if AMP_VERSION_NUMBER >= AMP_VERSION_AT(0, 2, 0)`. */
#define AMP_VERSION_MAJOR 0
#define AMP_VERSION_MINOR 1
#define AMP_VERSION_PATCH 0
#define AMP_VERSION_AT(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define AMP_VERSION_NUMBER AMP_VERSION_AT(AMP_VERSION_MAJOR, AMP_VERSION_MINOR, AMP_VERSION_PATCH)

#endif
