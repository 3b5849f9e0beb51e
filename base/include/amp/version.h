/* amp/version.h: the version of the libraries and of the models that the compiler makes. */
#ifndef AMP_VERSION_H
#define AMP_VERSION_H

#define AMP_VERSION "0.1.0"

#endif
