/* outputs.h: the files that a command reads and writes, compared before anything is opened for writing.
 *
 * No output is a file that the command reads, or another output, however their paths are spelled: files that exist are
 * compared by device and inode, others by their folder's real path and their name.  And no output replaces a file that
 * ampc or amprun did not write, unless --force says so: each kind of file is recognised by what it begins with, or by a
 * section or entry that only these tools write.  Empty files, devices and pipes may always be written.
 */
#ifndef AMP_TOOLS_OUTPUTS_H
#define AMP_TOOLS_OUTPUTS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an output holds, and what the file that is there must hold to be replaced. */
typedef enum OutputKind {
    OUTPUT_MODEL,       /* a shared object with the section .amp.sha256 */
    OUTPUT_OBJECT,      /* an object with the section .amp.ir */
    OUTPUT_C,           /* "Model NAME, compiled from FILE by ampc" in a comment */
    OUTPUT_IR,          /* module "NAME" stage */
    OUTPUT_CUDA,        /* "Model NAME for CUDA." in a comment */
    OUTPUT_PTX,         /* NVRTC's heading, and a function of the name ..._k00 */
    OUTPUT_EXPLANATION, /* JSON with "decisions" or "findings", of a comparison, or of policies */
    OUTPUT_DRAWING,     /* "Drawn by ampc explain" in a comment */
    OUTPUT_REPORT,      /* HTML whose generator is ampc */
    OUTPUT_RULES,       /* "NAME: \", a rule for make */
    OUTPUT_ONNX,        /* an ONNX model: none is replaced */
    OUTPUT_PARAMS,      /* safetensors with amp.format "params ..." */
    OUTPUT_CHECKPOINT,  /* ... "checkpoint ..." */
    OUTPUT_TENSORS,     /* ... "tensors ..." */
    OUTPUT_CHOICES,     /* ... "choices ..." */
    OUTPUT_SCHEMA,      /* "amp csv 1", and a line "fitted ..." */
    OUTPUT_LOG,         /* lines of JSON, the first with "model" and "policy" */
    OUTPUT_TRACE,       /* a trace of Perfetto, of a process "amprun: NAME" */
    OUTPUT_FOLDER,      /* a folder in which files are made, and none is replaced */
} OutputKind;

typedef struct NamedFile {
    const char *option; /* "--save"; for messages */
    const char *path;
    OutputKind kind;    /* of an output */
    const char *except; /* of an input: the option whose output may replace it; NULL: none */
} NamedFile;

/* Zeroed, with |tool|: nothing is read or written yet.  Paths are kept, not copied. */
typedef struct Outputs {
    const char *tool;                       /* "ampc" */
    int (*report)(const char *format, ...); /* tells what is wrong, as a line of the tool's; NULL: on standard error */
    int force;
    int inputs, outputs;
    NamedFile *input, *output;
    bool out_of_memory; /* some are not there: nothing may be written */
} Outputs;

/* A NULL path, or "-", is no file. */
void outputs_input(Outputs *o, const char *option, const char *path);
/* An input that the output of the option |except| may replace, as it is read in full before. */
void outputs_input_but(Outputs *o, const char *option, const char *path, const char *except);
void outputs_output(Outputs *o, const char *option, const char *path, OutputKind kind);
/* A folder, which need not be there yet. */
void outputs_folder(Outputs *o, const char *option, const char *path);

/* Compares all outputs with all inputs and each other, looks at what they would replace, and tries whether they can be
 * written.  0; 1: reported, a file cannot or must not be replaced; 2: reported, two of them are the same file. */
int outputs_check(const Outputs *o);
/* The same for one output against all inputs and the outputs of other options, before it is written: for files of
 * which it turns out only while the command runs that they are read or written. */
int outputs_check_one(const Outputs *o, const char *option, const char *path, OutputKind kind);

void outputs_free(Outputs *o);

/* Whether a file that exists was written by these tools as one of this kind; also true where it does not exist, is
 * empty, or is a device or pipe. */
bool outputs_are_own(const char *path, OutputKind kind);

/* TMPDIR, where it is set and not empty; else /tmp.  Not asked whether it is there. */
const char *temporary_folder(void);

enum { TEMPORARY_PATH = 512 };
/* A new folder in it, for this user alone: its name cannot be known before.  False: errno says why, and |path| is what
 * was tried. */
bool temporary_make_folder(const char *what, char path[TEMPORARY_PATH]);

#ifdef __cplusplus
}
#endif
#endif
