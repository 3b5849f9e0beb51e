# Builds and installs ampc without Bazel: the programs ampc and amprun, and libamp, libamp_comm and libampc, static and
# shared.
#
#     make [-j N]                     into $(OUT), "out"
#     make libamp                     the runtime alone; needs neither flex nor bison
#     make install [PREFIX=/usr/local] [DESTDIR=/stage] [LIBDIR=...]
#     make uninstall                  with the same PREFIX, DESTDIR and LIBDIR
#
# CC, CFLAGS, CPPFLAGS and LDFLAGS are used as given. Needs GNU make, gcc or clang, flex, bison and zlib's header; from a
# release archive, whose generated/ holds what flex and bison make, the last only, for all but libamp. Development and tests
# use Bazel (CONTRIBUTING.md); tests/checks/install.sh compares what the two builds compile.

VERSION := $(shell sed -n 's/^.define AMP_VERSION "\(.*\)"/\1/p' base/include/amp/version.h)
# Before 1.0 a minor version may change the ABI.
SOVERSION := $(word 1,$(subst ., ,$(VERSION))).$(word 2,$(subst ., ,$(VERSION)))

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
BINDIR := $(PREFIX)/bin
INCLUDEDIR := $(PREFIX)/include
DATADIR := $(PREFIX)/share
OUT ?= out
CFLAGS ?= -O2 -g

ifeq ($(origin CC),default)
CC := cc
endif
tool = $(shell $(CC) -print-prog-name=$(1))
AR := $(call tool,ar)
OBJCOPY := $(call tool,objcopy)
READELF := $(call tool,readelf)
MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

# ---- sources -------------------------------------------------------------------------------------

BASE := $(wildcard base/*.c cuda_sdk/*.c)
RUNTIME := $(BASE) $(wildcard base/safetensors/*.c) $(filter-out runtime/comm/%,$(wildcard runtime/*/*.c runtime/*/*/*.c \
	runtime/*/*/*/*.c))
COMM := $(wildcard base/*.c runtime/comm/*.c runtime/comm/*/*.c)
COMPILER := $(BASE) $(wildcard ir/*.c ir/interp/*.c targets/*.c frontend/*.c onnx/*.c precision/*.c passes/*.c passes/*/*.c \
	codegen/*.c codegen/*/*.c codegen/*/*/*.c compiler/*.c compiler/*/*.c)
GENERATED_C := frontend/lexer.c frontend/parser.c frontend/prelude_text.c precision/policy_files.c \
	codegen/cpu/embedded.c codegen/cuda/embedded.c compiler/report/embedded.c
SHARED_TOOLS := $(wildcard tools/*.c tools/roofline/*.c)
AMPC := $(wildcard tools/ampc/*.c tools/ampc/*/*.c) $(SHARED_TOOLS)
AMPRUN := $(wildcard tools/amprun/*.c tools/amprun/*/*.c) $(SHARED_TOOLS)
BENCHES := bench/gpu/step_bench.c bench/gpu/kernel_bench.c

GENERATED := $(if $(wildcard generated/frontend/parser.c),generated,$(OUT)/generated)
object = $(patsubst %.c,$(OUT)/objects/%.o,$(1))
RUNTIME_OBJECTS := $(call object,$(RUNTIME))
COMM_OBJECTS := $(call object,$(COMM))
COMPILER_OBJECTS := $(call object,$(COMPILER) $(GENERATED_C))

LIBS := libamp libamp_comm libampc
PROGRAMS := $(OUT)/ampc $(OUT)/amprun

.PHONY: all $(LIBS) generate install uninstall clean gpu-benches
all: $(LIBS) $(PROGRAMS)
$(LIBS): %: $(OUT)/%.a $(OUT)/%.so.$(SOVERSION)
# What dist/gpu-check builds on a machine on which the programs that it brings do not start.
gpu-benches: $(OUT)/amprun $(patsubst bench/gpu/%.c,$(OUT)/%,$(BENCHES))
generate: $(addprefix $(GENERATED)/,$(GENERATED_C) frontend/parser.h)
clean:
	rm -rf $(OUT)
# What a library is made of, for tests.
.PHONY: $(LIBS:%=sources_of_%) $(LIBS:%=objects_of_%)
sources_of_libamp:
	@echo $(RUNTIME)
sources_of_libamp_comm:
	@echo $(COMM)
sources_of_libampc:
	@echo $(COMPILER)
objects_of_libamp:
	@echo $(RUNTIME_OBJECTS)
objects_of_libamp_comm:
	@echo $(COMM_OBJECTS)
objects_of_libampc:
	@echo $(COMPILER_OBJECTS)
# What a failed command left is no result.
.DELETE_ON_ERROR:

# ---- generated sources ---------------------------------------------------------------------------

ifneq ($(GENERATED),generated)
CPU_PRELUDE := $(addprefix codegen/,cpu/prelude/vector.h cpu/prelude/arithmetic.h prelude/functions.h \
	cpu/prelude/reduce.h cpu/prelude/random.h cpu/prelude/tiles.h cpu/prelude/memory.h cpu/prelude/moments.h \
	cpu/prelude/attention.h)
CPU_SUMS_PRELUDE := $(addprefix codegen/cpu/prelude/,device_block.h device_sums.h)
MODEL_ABI := base/include/amp/base.h runtime/include/amp/model_abi.h
cuda_part = $(patsubst %,codegen/cuda/prelude/%.cuh,$(1))
CUDA_PRELUDE := $(call cuda_part,types number arithmetic) $(GENERATED)/codegen/cuda/prelude/functions.cuh \
	$(call cuda_part,near random memory look overlap reduce superstep partial scatter mma held_row product_tile product_windows product_tensor product_sums \
	product bundle attention attention_forward attention_gradient)

REPORT_JS := $(patsubst %,compiler/report/page/%.js,inflate parts model dom theme tabs table chart layout graph details memory views run main)
AUTOCAST_JS := $(patsubst %,compiler/report/page/%.js,inflate parts dom theme tabs table autocast)

$(GENERATED)/frontend/lexer.c: frontend/lexer.l
	@mkdir -p $(@D)
	flex --noline --never-interactive --nounistd --outfile=$@ $<
$(GENERATED)/frontend/parser.c: frontend/parser.y
	@mkdir -p $(@D)
	grammar=$$PWD/$< && cd $(@D) && bison --no-lines -Werror --header=parser.h --output=parser.c $$grammar
$(GENERATED)/frontend/parser.h: $(GENERATED)/frontend/parser.c ;
$(GENERATED)/frontend/prelude_text.c: frontend/prelude.amp frontend/embed_prelude.sh
	@mkdir -p $(@D)
	sh frontend/embed_prelude.sh $< >$@
$(GENERATED)/precision/policy_files.c: $(sort $(wildcard precision/policies/*.policy))
	@mkdir -p $(@D)
	sh precision/policies/embed.sh $^ >$@
$(GENERATED)/codegen/cuda/prelude/functions.cuh: codegen/prelude/functions.h codegen/prelude/elements.sed
	@mkdir -p $(@D)
	sed -f codegen/prelude/elements.sed $< >$@
$(GENERATED)/codegen/cuda/embedded.c: $(CUDA_PRELUDE) codegen/cpu/embed.awk
	@mkdir -p $(@D)
	awk -v HEADER=codegen/cuda/cuda.h -f codegen/cpu/embed.awk NAME=cuda_prelude $(CUDA_PRELUDE) >$@
$(GENERATED)/codegen/cpu/embedded.c: $(MODEL_ABI) $(CPU_PRELUDE) $(CPU_SUMS_PRELUDE) codegen/cpu/embed.awk
	@mkdir -p $(@D)
	awk -f codegen/cpu/embed.awk NAME=cpu_abi $(MODEL_ABI) NAME=cpu_prelude $(CPU_PRELUDE) \
		NAME=cpu_sums_prelude $(CPU_SUMS_PRELUDE) >$@
$(GENERATED)/compiler/report/embedded.c: $(addprefix compiler/report/page/report.,html css) $(REPORT_JS) $(AUTOCAST_JS) codegen/cpu/embed.awk
	@mkdir -p $(@D)
	awk -v HEADER=compiler/report/report.h -f codegen/cpu/embed.awk NAME=report_html compiler/report/page/report.html \
		NAME=report_css compiler/report/page/report.css NAME=report_js $(REPORT_JS) NAME=autocast_js $(AUTOCAST_JS) >$@
endif

# ---- objects -------------------------------------------------------------------------------------

# One compilation serves archives, shared objects and programs. No path of this machine gets into the results.
REQUIRED := -std=c11 -fPIC -fvisibility=hidden -I. -I$(GENERATED) -Ibase/include -Iruntime/include -Icompiler/include \
	-ffile-prefix-map=$(CURDIR)/=
flags = $(REQUIRED) $(FLAGS_$(firstword $(subst /, ,$(1)))) $(FLAGS_$(basename $(notdir $(1)))) \
	$(if $(findstring runtime/device/cpu/product/,$(1)),-O3) $(if $(filter $(SMALL),$(1)),-Os)
# What computes, or is called for each element or task. The rest of libamp runs once, makes a few calls a step or hands
# out tasks: it is small rather than fast. On x86 the portable products are for processors before 2013; their loops are
# written in vectors, and as fast by -Os.
HANDS_OUT := attention_grad batch conv conv_group narrow product product_select
PORTABLE := $(if $(filter x86_64 amd64,$(MACHINE)),product_portable)
FAST := $(filter-out $(patsubst %,runtime/device/cpu/product/%.c,$(HANDS_OUT) $(PORTABLE)), \
	$(wildcard runtime/device/cpu/product/*.c)) runtime/device/cpu/pool.c runtime/files/weight_copy.c \
	runtime/model/matrix_layout.c runtime/session/look.c base/hash.c base/random.c base/rounding.c base/thread.c
SMALL := $(filter-out $(FAST),$(RUNTIME))
# The initialisers and the portable products promise the same bits everywhere: no compiler may merge a product and a sum.
FLAGS_runtime := -ffp-contract=off
# flex writes a function that would exit; nothing calls it.
FLAGS_lexer := -Wno-unused-function
FLAGS_compiler := -D_GNU_SOURCE
FLAGS_tools := -D_GNU_SOURCE
FLAGS_bench := -D_GNU_SOURCE
ifneq ($(filter x86_64 amd64,$(MACHINE)),)
# Nothing that they call unwinds: they call nothing.
LEAF := -fno-asynchronous-unwind-tables -fno-unwind-tables
FLAGS_product_avx2 := -mavx2 -mfma $(LEAF)
FLAGS_product_avx512 := -mavx512f $(LEAF)
FLAGS_product_avx512_bf16 := -mavx512f -mavx512bf16 $(LEAF)
FLAGS_product_portable := $(LEAF)
endif

COMPILE = $(CC) $(CPPFLAGS) $(CFLAGS) $(call flags,$*.c) -MMD -MP -c $< -o $@
$(OUT)/objects/%.o: %.c
	@mkdir -p $(@D)
	$(COMPILE)
$(OUT)/objects/%.o: $(GENERATED)/%.c
	@mkdir -p $(@D)
	$(COMPILE)
$(call object,$(wildcard frontend/*.c) $(GENERATED_C)): | $(GENERATED)/frontend/parser.h
$(call object,$(RUNTIME) $(COMM) $(COMPILER) $(GENERATED_C) $(AMPC) $(AMPRUN) $(BENCHES)): Makefile
-include $(patsubst %.o,%.d,$(sort $(RUNTIME_OBJECTS) $(COMM_OBJECTS) $(COMPILER_OBJECTS) $(call object,$(AMPC) $(AMPRUN) $(BENCHES))))

# ---- libraries and programs ----------------------------------------------------------------------

# An archive of one object in which only the public functions are visible, so that no name inside can clash with one of
# the application; they are weak, so that an application can link several of the archives, which share base/.
define ARCHIVE
$(CC) -r -nostdlib -o $@.o $(filter %.o,$^)
$(READELF) -sW $@.o | awk '$$5 == "GLOBAL" && $$6 == "HIDDEN" && $$7 != "UND" { print $$8 }' >$@.hidden
$(READELF) -sW $@.o | awk '$$5 == "GLOBAL" && $$6 == "DEFAULT" && $$7 != "UND" { print $$8 }' >$@.public
$(OBJCOPY) --localize-symbols=$@.hidden --weaken-symbols=$@.public $@.o
rm -f $@
$(AR) rcD $@ $@.o
rm $@.o $@.hidden $@.public
endef
LIBS_libampc := -lz
SHARED = $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(notdir $@) -Wl,--version-script=packaging/$*.map \
	-Wl,-z,defs -Wl,--as-needed -o $@ $(filter %.o,$^) $(LIBS_$*) -lpthread -ldl -lm

$(OUT)/libamp.a: $(RUNTIME_OBJECTS)
	$(ARCHIVE)
$(OUT)/libamp_comm.a: $(COMM_OBJECTS)
	$(ARCHIVE)
$(OUT)/libampc.a: $(COMPILER_OBJECTS)
	$(ARCHIVE)
$(OUT)/libamp.so.$(SOVERSION): $(OUT)/%.so.$(SOVERSION): $(RUNTIME_OBJECTS) packaging/libamp.map
	$(SHARED)
$(OUT)/libamp_comm.so.$(SOVERSION): $(OUT)/%.so.$(SOVERSION): $(COMM_OBJECTS) packaging/libamp_comm.map
	$(SHARED)
$(OUT)/libampc.so.$(SOVERSION): $(OUT)/%.so.$(SOVERSION): $(COMPILER_OBJECTS) packaging/libampc.map
	$(SHARED)
$(OUT)/ampc: $(call object,$(AMPC)) $(COMPILER_OBJECTS) $(RUNTIME_OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lz -lpthread -ldl -lm
$(OUT)/amprun: $(call object,$(AMPRUN)) $(COMPILER_OBJECTS) $(RUNTIME_OBJECTS) $(COMM_OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lz -lpthread -ldl -lm
$(patsubst bench/gpu/%.c,$(OUT)/%,$(BENCHES)): $(OUT)/%: $(OUT)/objects/bench/gpu/%.o $(RUNTIME_OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread -ldl -lm

# ---- installing ----------------------------------------------------------------------------------

CMAKEDIR := $(LIBDIR)/cmake/ampc
BAZELDIR := $(DATADIR)/ampc/bazel
DOCDIR := $(DATADIR)/doc/ampc
# In the folders that they have here, so that their links hold.
DOCS := $(wildcard docs/*.md docs/*/*.md docs/pictures/*.png docs/pictures/*.amp docs/pictures/offers.py) \
	examples/README.md $(filter-out %/BUILD %/train,$(wildcard examples/*/*))
# from(FOLDER, FILE): the way from an installed folder to an installed file, so that what is installed can be moved.
from = $(shell realpath -m -s --relative-to=$(1) $(2))
to = $(addprefix $(DESTDIR),$(1))

HEADERS := $(wildcard $(foreach folder,base runtime compiler,$(folder)/include/amp/*.h $(folder)/include/amp/*.hpp))
# Written by the programs themselves, where this machine can run them.
COMPLETIONS := $(foreach p,ampc amprun,$(DATADIR)/bash-completion/completions/$(p) $(DATADIR)/zsh/site-functions/_$(p) \
	$(DATADIR)/fish/vendor_completions.d/$(p).fish)
complete = for p in ampc amprun; do $(OUT)/$$p --describe $(1) >$(DESTDIR)$(DATADIR)/$(2)/$(3)$$p$(4) || exit; done
INSTALLED := $(COMPLETIONS) $(addprefix $(INCLUDEDIR)/amp/,$(notdir $(HEADERS))) \
	$(foreach l,$(LIBS),$(LIBDIR)/$(l).a $(LIBDIR)/$(l).so.$(SOVERSION) $(LIBDIR)/$(l).so) \
	$(BINDIR)/ampc $(BINDIR)/amprun $(DATADIR)/man/man1/ampc.1 $(DATADIR)/man/man1/amprun.1 \
	$(addprefix $(LIBDIR)/pkgconfig/,amp.pc amp_comm.pc ampc.pc) \
	$(CMAKEDIR)/ampcConfig.cmake $(CMAKEDIR)/ampcConfigVersion.cmake $(CMAKEDIR)/AmpAddModel.cmake \
	$(BAZELDIR)/WORKSPACE $(BAZELDIR)/BUILD.bazel $(BAZELDIR)/amp.bzl \
	$(DATADIR)/ampc/prelude.amp $(DATADIR)/ampc/python/ampc.py $(addprefix $(DOCDIR)/,$(DOCS)) \
	$(addprefix $(DATADIR)/ampc/policies/,$(notdir $(wildcard precision/policies/*.policy)))

install: all
	install -d $(call to,$(sort $(dir $(INSTALLED))))
	install -m 755 $(PROGRAMS) $(call to,$(BINDIR))
	install -m 644 $(HEADERS) $(call to,$(INCLUDEDIR)/amp)
	install -m 644 $(foreach l,$(LIBS),$(OUT)/$(l).a $(OUT)/$(l).so.$(SOVERSION)) $(call to,$(LIBDIR))
	for l in $(LIBS); do ln -sf $$l.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/$$l.so || exit; done
	install -m 644 docs/man/ampc.1 docs/man/amprun.1 $(call to,$(DATADIR)/man/man1)
	for d in $(DOCS); do install -m 644 $$d $(DESTDIR)$(DOCDIR)/$$d || exit; done
	install -m 644 frontend/prelude.amp $(call to,$(DATADIR)/ampc)
	install -m 644 bindings/python/ampc.py $(call to,$(DATADIR)/ampc/python)
	install -m 644 precision/policies/*.policy $(call to,$(DATADIR)/ampc/policies)
	install -m 644 packaging/cmake/AmpAddModel.cmake $(call to,$(CMAKEDIR))
	install -m 644 packaging/bazel/WORKSPACE packaging/bazel/amp.bzl $(call to,$(BAZELDIR))
	$(call fill,packaging/amp.pc.in,$(LIBDIR)/pkgconfig/amp.pc)
	$(call fill,packaging/amp_comm.pc.in,$(LIBDIR)/pkgconfig/amp_comm.pc)
	$(call fill,packaging/ampc.pc.in,$(LIBDIR)/pkgconfig/ampc.pc)
	$(call fill,packaging/cmake/ampcConfig.cmake.in,$(CMAKEDIR)/ampcConfig.cmake)
	$(call fill,packaging/cmake/ampcConfigVersion.cmake.in,$(CMAKEDIR)/ampcConfigVersion.cmake)
	$(call fill,packaging/bazel/BUILD.bazel.in,$(BAZELDIR)/BUILD.bazel)
	if $(OUT)/ampc --version >/dev/null 2>&1; then \
		$(call complete,bash,bash-completion/completions); \
		$(call complete,zsh,zsh/site-functions,_); \
		$(call complete,fish,fish/vendor_completions.d,,.fish); \
	fi
	ln -sfn $(call from,$(BAZELDIR),$(INCLUDEDIR)) $(DESTDIR)$(BAZELDIR)/include
	ln -sfn $(call from,$(BAZELDIR),$(LIBDIR)) $(DESTDIR)$(BAZELDIR)/lib
	ln -sfn $(call from,$(BAZELDIR),$(BINDIR)) $(DESTDIR)$(BAZELDIR)/bin

# fill(TEMPLATE, FILE): @PREFIX@ is the way from the file's folder to the prefix
fill = sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@SOVERSION@|$(SOVERSION)|g' \
	-e 's|@PREFIX@|$(call from,$(dir $(2)),$(PREFIX))|g' -e 's|@LIB@|$(call from,$(PREFIX),$(LIBDIR))|g' \
	$(1) >$(DESTDIR)$(2) && chmod 644 $(DESTDIR)$(2)

uninstall:
	rm -f $(call to,$(INSTALLED) $(addprefix $(BAZELDIR)/,include lib bin))
	-rmdir -p --ignore-fail-on-non-empty $(call to,$(sort $(dir $(INSTALLED)))) 2>/dev/null
