#include "tests/codegen/model_runner.h"

GuardedMemory::GuardedMemory(size_t size) : size_(size) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_ = (size + page - 1) / page * page + page;
    base_ = static_cast<char *>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + mapped_ - page, page, PROT_NONE);
    data_ = base_ + mapped_ - page - size;
    memset(data_, 0xFF, size); // floats are NaN
}

size_t StorageSize(uint32_t storage) {
    switch (storage) {
    case AMP_DT_F16:
    case AMP_DT_BF16: return 2;
    case AMP_DT_U8: return 1;
    case AMP_DT_I64:
    case AMP_DT_F64: return 8;
    default: return 4;
    }
}

int64_t ElementIndex(uint32_t layout, int64_t r, int64_t c, int64_t rows, int64_t cols) {
    const int64_t R = Up32(rows), C = Up32(cols);
    switch (layout) {
    case AMP_LAYOUT_PANELS: return c / 32 * R * 32 + r * 32 + c % 32;
    case AMP_LAYOUT_PAIRS: return c / 32 * R * 32 + r / 2 * 64 + c % 32 * 2 + r % 2;
    case AMP_LAYOUT_PANELS_T: return r / 32 * C * 32 + c * 32 + r % 32;
    case AMP_LAYOUT_PAIRS_T: return r / 32 * C * 32 + c / 2 * 64 + r % 32 * 2 + c % 2;
    default: return r * cols + c;
    }
}

double ReadElement(const char *data, uint32_t storage, bool is_bool, int64_t i) {
    auto at = [&](auto sample) {
        memcpy(&sample, data + static_cast<size_t>(i) * sizeof sample, sizeof sample);
        return sample;
    };
    if (is_bool) return at(int32_t{}) != 0;
    switch (storage) {
    case AMP_DT_F16: return amp_f16_to_f32(at(uint16_t{}));
    case AMP_DT_BF16: return amp_bf16_to_f32(at(uint16_t{}));
    case AMP_DT_I32: return at(int32_t{});
    case AMP_DT_U8: return at(uint8_t{});
    case AMP_DT_I64: return static_cast<double>(at(int64_t{}));
    case AMP_DT_F64: return at(double{});
    default: return static_cast<double>(at(float{}));
    }
}

void WriteElement(char *data, uint32_t storage, int64_t i, double v) {
    auto put = [&](auto x) { memcpy(data + static_cast<size_t>(i) * sizeof x, &x, sizeof x); };
    switch (storage) {
    case AMP_DT_F16: return put(amp_f32_to_f16(static_cast<float>(v)));
    case AMP_DT_BF16: return put(amp_f32_to_bf16(static_cast<float>(v)));
    case AMP_DT_I32:
    case AMP_DT_BOOL: return put(static_cast<int32_t>(v));
    case AMP_DT_U8: return put(static_cast<uint8_t>(v));
    case AMP_DT_I64: return put(static_cast<int64_t>(v));
    case AMP_DT_F64: return put(v);
    default: return put(static_cast<float>(v));
    }
}

bool HasIsa(int isa) {
    const unsigned features = amp_cpu_features();
    if (isa == AMP_ISA_V4) return features & AMP_CPU_X86_64_V4;
    if (isa == AMP_ISA_V3) return features & AMP_CPU_X86_64_V3;
    return true;
}

LoadedModel::LoadedModel(const void *bytes, size_t size) : bytes_(static_cast<const char *>(bytes), size) {
    char path[] = "/tmp/codegen-test-XXXXXX";
    const int fd = mkstemp(path);
    EXPECT_EQ(write(fd, bytes, size), static_cast<ssize_t>(size));
    close(fd);
    handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle_) ADD_FAILURE() << dlerror();
    unlink(path);
    auto query = handle_ ? reinterpret_cast<amp_model_query_fn>(dlsym(handle_, AMP_MODEL_SYMBOL)) : nullptr;
    desc_ = query ? query() : nullptr;
}

std::string LoadedModel::Kept(const char *section) const {
    size_t at, length;
    std::string kept;
    Arena arena;
    Text text;
    if (amp_elf_section(bytes_.data(), bytes_.size(), section, &at, &length, nullptr)) return kept;
    arena_init(&arena, nullptr);
    text_init(&text, &arena);
    if (kept_text_unpack(bytes_.data() + at, length, &text)) kept.assign(text_str(&text), text.len);
    arena_free(&arena);
    return kept;
}

LoadedModel::~LoadedModel() {
    if (handle_) dlclose(handle_);
}

bool LoadedModel::Runs(int isa) const {
    auto *programs = static_cast<const amp_model_program *>(desc_->programs.data);
    for (uint32_t i = 0; i < desc_->programs.count; i++)
        if (programs[i].kernels.count)
            return HasIsa(isa) && static_cast<const amp_model_kernel *>(programs[i].kernels.data)->run[isa];
    return HasIsa(isa);
}

const amp_model_program *LoadedModel::Program(const std::string &name) const {
    auto *programs = static_cast<const amp_model_program *>(desc_->programs.data);
    for (uint32_t i = 0; i < desc_->programs.count; i++)
        if (programs[i].name == name) return &programs[i];
    return nullptr;
}

ProgramRun::ProgramRun(const LoadedModel &model, const std::string &program, int isa, int64_t n, bool watch)
    : program_(model.Program(program)), isa_(isa), n_(n) {
    memory_.resize(program_->buffers.count);
    for (uint32_t i = 0; i < program_->buffers.count; i++) {
        if (buffer(i).kind == AMP_BUFFER_WATCH && !watch) continue;
        memory_[i] = std::make_unique<GuardedMemory>(static_cast<size_t>(Elements(i)) * StorageSize(buffer(i).storage));
        if (buffer(i).kind == AMP_BUFFER_FLAG) memset(memory_[i]->data(), 0, memory_[i]->size());
    }
}

const amp_model_buffer &ProgramRun::buffer(uint32_t i) const {
    return static_cast<const amp_model_buffer *>(program_->buffers.data)[i];
}

void ProgramRun::Set(const Values &values) {
    for (uint32_t i = 0; i < program_->buffers.count; i++) {
        auto found = values.find(buffer(i).name);
        if (found == values.end() || !memory_[i]) continue;
        if (buffer(i).layout != AMP_LAYOUT_ROWS) ClearPadding(i);
        Each(i, [&](int64_t r, int64_t c, int64_t at) {
            WriteElement(memory_[i]->data(), buffer(i).storage, at,
                         found->second[static_cast<size_t>(r * Cols(i) + c)]);
        });
    }
}

std::vector<double> ProgramRun::Get(uint32_t i) const {
    std::vector<double> out(static_cast<size_t>(Rows(i) * Cols(i)));
    Each(i, [&](int64_t r, int64_t c, int64_t at) { out[static_cast<size_t>(r * Cols(i) + c)] = Element(i, at); });
    return out;
}

std::vector<double> ProgramRun::Get(const std::string &name) const {
    for (uint32_t i = 0; i < program_->buffers.count; i++)
        if (buffer(i).name == name && memory_[i]) return Get(i);
    ADD_FAILURE() << "no buffer holds " << name;
    return {};
}

bool ProgramRun::PaddingIsZero(uint32_t i) const {
    if (buffer(i).layout == AMP_LAYOUT_ROWS || Bits(i) == std::string(memory_[i]->size(), '\xFF')) return true;
    bool zero = true;
    EachOfPadding(i, [&](int64_t at) { zero = zero && Element(i, at) == 0.0; });
    return zero;
}

void ProgramRun::Run() {
    auto *kernels = static_cast<const amp_model_kernel *>(program_->kernels.data);
    for (uint32_t i = 0; i < program_->kernels.count; i++) RunKernel(kernels[i]);
}

int64_t ProgramRun::Elements(uint32_t i) const {
    const bool dense = buffer(i).layout == AMP_LAYOUT_ROWS;
    return dense ? Rows(i) * Cols(i) : Up32(Rows(i)) * Up32(Cols(i));
}

double ProgramRun::Element(uint32_t i, int64_t at) const {
    return ReadElement(memory_[i]->data(), buffer(i).storage, buffer(i).dtype == AMP_DT_BOOL, at);
}

void ProgramRun::Each(uint32_t i, const std::function<void(int64_t, int64_t, int64_t)> &visit) const {
    for (int64_t r = 0; r < Rows(i); r++)
        for (int64_t c = 0; c < Cols(i); c++) visit(r, c, ElementIndex(buffer(i).layout, r, c, Rows(i), Cols(i)));
}

void ProgramRun::EachOfPadding(uint32_t i, const std::function<void(int64_t)> &visit) const {
    const int64_t rows = buffer(i).layout == AMP_LAYOUT_PANELS ? Rows(i) : Up32(Rows(i));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < Rows(i) ? Cols(i) : 0; c < Up32(Cols(i)); c++)
            visit(ElementIndex(buffer(i).layout, r, c, Rows(i), Cols(i)));
}

void ProgramRun::ClearPadding(uint32_t i) {
    EachOfPadding(i, [&](int64_t at) { WriteElement(memory_[i]->data(), buffer(i).storage, at, 0.0); });
}

void ProgramRun::RunKernel(const amp_model_kernel &k) {
    if (k.predicate >= 0 && Element(static_cast<uint32_t>(k.predicate), 0) == 0.0) return;
    std::vector<void *> operands;
    for (uint32_t i = 0; i < k.operand_count; i++)
        operands.push_back(memory_[k.operands[i]] ? memory_[k.operands[i]]->data() : nullptr);
    if (k.kind == AMP_KERNEL_ATTENTION) {
        RunAttention(k, operands);
        return;
    }
    const int64_t rows = EvalDim(k.rows, n_), cols = EvalDim(k.cols, n_);
    const bool whole = k.kind == AMP_KERNEL_COLUMN || k.kind == AMP_KERNEL_SCALAR || k.kind == AMP_KERNEL_SCATTER;
    const int64_t row_step = k.segment.mul ? EvalDim(k.segment, n_) : whole ? rows : 32;
    const int64_t col_step = k.kind == AMP_KERNEL_ROW || k.kind == AMP_KERNEL_SCALAR ? cols : 32;
    for (int64_t c = 0; c < cols; c += col_step)
        for (int64_t r = 0; r < rows; r += row_step) {
            alignas(64) float acc[32 * 32];
            amp_kernel_args args = {};
            args.buffer = operands.data();
            args.n = n_, args.t = run_length;
            args.row0 = r;
            args.rows = std::min(row_step, rows - r);
            args.col0 = c;
            if (k.kind == AMP_KERNEL_PRODUCT) {
                Product(k, args, acc);
                args.acc = acc;
            }
            k.run[isa_](&args);
        }
}

amp_attention_rows ProgramRun::AttentionRows(const amp_model_attention &x, const amp_model_attention_operand &o,
                                             const std::vector<void *> &operands, int64_t size) const {
    amp_attention_rows to = {};
    if (o.operand < 0) return to;
    to.data = static_cast<char *>(operands[static_cast<size_t>(o.operand)]) + o.at.offset * size;
    to.pitch = EvalDim(o.at.pitch, n_) * size;
    for (uint32_t i = 0; i < x.rank; i++) to.stride[i] = EvalDim(o.at.strides[i], n_) * size;
    return to;
}

void ProgramRun::RunAttention(const amp_model_kernel &k, const std::vector<void *> &operands) {
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    const amp_model_attention &x = *k.attention;
    const int64_t size = static_cast<int64_t>(StorageSize(x.storage));
    Step step = {k.run[isa_], {}};
    step.args.buffer = operands.data();
    step.args.n = n_, step.args.t = run_length;
    amp_attention a = {};
    a.kernels = amp_product_select(static_cast<amp_dtype>(x.storage), isas[isa_], nullptr);
    a.ctx = &step;
    a.step = [](void *ctx, const amp_attention_tile *tile) {
        Step with = *static_cast<Step *>(ctx);
        with.args.attention = tile;
        with.run(&with.args);
    };
    a.backward = x.backward, a.causal = x.causal, a.mask_is_one = x.mask.one_step;
    a.rank = static_cast<int32_t>(x.rank), a.share = x.share;
    for (uint32_t i = 0; i < x.rank; i++) a.dims[i] = EvalDim(x.dims[i], n_);
    a.queries = EvalDim(x.queries, n_), a.keys = EvalDim(x.keys, n_), a.width = x.width, a.v_width = x.v_width;
    a.q = AttentionRows(x, x.q, operands, size), a.k = AttentionRows(x, x.k, operands, size);
    a.v = AttentionRows(x, x.v, operands, size), a.dy = AttentionRows(x, x.dy, operands, size);
    a.mask = AttentionRows(x, x.mask, operands, 4), a.sums = AttentionRows(x, x.sums, operands, 4);
    for (int i = 0; i < 3; i++) a.result[i] = AttentionRows(x, x.result[i], operands, 4);
    if (x.y >= 0) {
        const uint32_t y = k.operands[x.y];
        a.y.data = static_cast<const char *>(operands[static_cast<size_t>(x.y)]);
        a.y.in_panels = buffer(y).layout == AMP_LAYOUT_PANELS;
        a.y.rows = Rows(y), a.y.cols = Cols(y);
        a.y.element = static_cast<int64_t>(StorageSize(buffer(y).storage));
    }
    // Scratch begins anywhere that is aligned, as garbage; a task leaves nothing that another one needs.
    const size_t bytes = amp_attention_thread_bytes(&a);
    for (int64_t i = amp_attention_tasks(&a) - 1; i >= 0; i--) amp_attention_task(&a, i, GuardedMemory(bytes).data());
    for (int64_t i = amp_attention_second_tasks(&a) - 1; i >= 0; i--)
        amp_attention_second_task(&a, i, GuardedMemory(bytes).data());
}

void ProgramRun::Product(const amp_model_kernel &k, const amp_kernel_args &args, float *acc) const {
    const uint32_t a = k.operands[k.product.a], b = k.operands[k.product.b];
    if (k.window.kind != AMP_WINDOW_NONE) {
        ImageProduct(k, a, b, EvalDim(k.cols, n_), args, acc);
        return;
    }
    if (k.batch) {
        BatchProduct(k, a, b, args, acc);
        return;
    }
    const int64_t inner = EvalDim(k.product.k, n_), cols = EvalDim(k.cols, n_);
    for (int64_t r = 0; r < args.rows; r++)
        for (int64_t c = 0; c < 32; c++) {
            float sum = 0.0f;
            for (int64_t i = 0; i < inner && args.col0 + c < cols; i++) {
                const int64_t row = args.row0 + r, col = args.col0 + c;
                const double x = k.product.a_transposed ? At(a, i, row) : At(a, row, i),
                             y = k.product.b_transposed ? At(b, col, i) : At(b, i, col);
                sum = fmaf(static_cast<float>(x), static_cast<float>(y), sum);
            }
            acc[r * 32 + c] = sum;
        }
}

void ProgramRun::BatchProduct(const amp_model_kernel &k, uint32_t a, uint32_t b, const amp_kernel_args &args,
                              float *acc) const {
    const int64_t m = EvalDim(k.batch->m, n_), n = EvalDim(k.batch->n, n_), cols = EvalDim(k.cols, n_);
    for (int64_t r = 0; r < args.rows; r++)
        for (int64_t c = 0; c < 32; c++) {
            const int64_t row = args.row0 + r, col = args.col0 + c;
            std::vector<int64_t> at(k.batch->rank);
            int64_t product = row / m;
            for (int d = static_cast<int>(k.batch->rank) - 1; d >= 0; d--) {
                if (k.batch->in_columns && d == static_cast<int>(k.batch->rank) - 1) {
                    at[static_cast<size_t>(d)] = col / n;
                    continue;
                }
                at[static_cast<size_t>(d)] = product % EvalDim(k.batch->dims[d], n_);
                product /= EvalDim(k.batch->dims[d], n_);
            }
            acc[r * 32 + c] = col < cols ? BatchElement(k, a, b, at, row % m, col % n) : 0.0f;
        }
}

float ProgramRun::BatchElement(const amp_model_kernel &k, uint32_t a, uint32_t b, const std::vector<int64_t> &at,
                               int64_t row, int64_t col) const {
    float sum = 0.0f;
    for (int64_t i = 0; i < EvalDim(k.product.k, n_); i++) {
        const double x = BatchAt(k.batch->a, a, at, k.product.a_transposed ? i : row, k.product.a_transposed ? row : i),
                     y = BatchAt(k.batch->b, b, at, k.product.b_transposed ? col : i, k.product.b_transposed ? i : col);
        sum = fmaf(static_cast<float>(x), static_cast<float>(y), sum);
    }
    return sum;
}

double ProgramRun::BatchAt(const amp_model_batch_operand &x, uint32_t i, const std::vector<int64_t> &at, int64_t row,
                           int64_t col) const {
    int64_t index = x.offset + row * EvalDim(x.pitch, n_) + col;
    for (size_t d = 0; d < at.size(); d++) index += at[d] * EvalDim(x.strides[d], n_);
    EXPECT_EQ(buffer(i).layout, static_cast<uint32_t>(AMP_LAYOUT_ROWS));
    EXPECT_LT(index, Elements(i));
    return Element(i, index);
}

void ProgramRun::ImageProduct(const amp_model_kernel &k, uint32_t a, uint32_t b, int64_t cols,
                              const amp_kernel_args &args, float *acc) const {
    const amp_model_window &g = k.window;
    for (int64_t r = 0; r < args.rows; r++)
        for (int64_t c = 0; c < 32; c++) {
            const bool inside = args.col0 + c < cols;
            acc[r * 32 + c] = !inside                            ? 0.0f
                              : g.kind == AMP_WINDOW_CONV_WEIGHT ? WeightElement(g, a, b, args.row0 + r, args.col0 + c)
                                                                 : PixelElement(k, a, b, args.row0 + r, args.col0 + c);
        }
}

int64_t ProgramRun::Under(const amp_model_window &g, int64_t n, int64_t oy, int64_t ox, int64_t kh, int64_t kw) {
    const int64_t y = oy * g.stride[0] + kh * g.dilation[0] - g.padding[0],
                  x = ox * g.stride[1] + kw * g.dilation[1] - g.padding[1];
    return y < 0 || y >= g.h || x < 0 || x >= g.w ? -1 : (n * g.h + y) * g.w + x;
}

int64_t ProgramRun::Over(const amp_model_window &g, int64_t n, int64_t y, int64_t x, int64_t kh, int64_t kw) {
    const int64_t ty = y + g.padding[0] - kh * g.dilation[0], tx = x + g.padding[1] - kw * g.dilation[1];
    const int64_t oy = ty / g.stride[0], ox = tx / g.stride[1];
    if (ty < 0 || tx < 0 || ty % g.stride[0] || tx % g.stride[1] || oy >= g.oh || ox >= g.ow) return -1;
    return (n * g.oh + oy) * g.ow + ox;
}

float ProgramRun::WeightAt(const amp_model_kernel &k, uint32_t b, int64_t tap, int64_t i, int64_t col) const {
    const amp_model_window &g = k.window;
    const bool forward = g.kind == AMP_WINDOW_CONV;
    const int64_t inputs = g.c / Groups(g), outputs = g.oc / Groups(g), input = forward ? i : col,
                  output = forward ? col : i;
    if (input / inputs != output / outputs) return 0;
    if (forward || Groups(g) > 1 || k.product.b_transposed)
        return static_cast<float>(At(b, tap * inputs + input % inputs, output));
    return static_cast<float>(At(b, tap * g.oc + output, input));
}

float ProgramRun::PixelElement(const amp_model_kernel &k, uint32_t a, uint32_t b, int64_t row, int64_t col) const {
    const amp_model_window &g = k.window;
    const bool forward = g.kind == AMP_WINDOW_CONV;
    const int64_t h = forward ? g.oh : g.h, w = forward ? g.ow : g.w, depth = forward ? g.c : g.oc;
    float sum = 0.0f;
    for (int64_t kh = 0; kh < g.kh; kh++)
        for (int64_t kw = 0; kw < g.kw; kw++) {
            const int64_t n = row / (h * w), y = row / w % h, x = row % w,
                          pixel = forward ? Under(g, n, y, x, kh, kw) : Over(g, n, y, x, kh, kw);
            for (int64_t i = 0; i < depth && pixel >= 0; i++)
                sum =
                    fmaf(static_cast<float>(ImageAt(a, pixel, i, depth)), WeightAt(k, b, kh * g.kw + kw, i, col), sum);
        }
    return sum;
}

float ProgramRun::WeightElement(const amp_model_window &g, uint32_t a, uint32_t b, int64_t row, int64_t col) const {
    const int64_t inputs = g.c / Groups(g), kh = row / (g.kw * inputs), kw = row / inputs % g.kw,
                  channel = col / (g.oc / Groups(g)) * inputs + row % inputs;
    float sum = 0.0f;
    for (int64_t p = 0; p < n_ * g.oh * g.ow; p++) {
        const int64_t pixel = Under(g, p / (g.oh * g.ow), p / g.ow % g.oh, p % g.ow, kh, kw);
        if (pixel < 0) continue;
        sum = fmaf(static_cast<float>(ImageAt(a, pixel, channel, g.c)), static_cast<float>(ImageAt(b, p, col, g.oc)),
                   sum);
    }
    return sum;
}

double ProgramRun::ImageAt(uint32_t i, int64_t pixel, int64_t channel, int64_t channels) const {
    return buffer(i).layout == AMP_LAYOUT_ROWS ? Element(i, pixel * channels + channel) : At(i, pixel, channel);
}

double ProgramRun::At(uint32_t i, int64_t r, int64_t c) const {
    return Element(i, ElementIndex(buffer(i).layout, r, c, Rows(i), Cols(i)));
}

CodegenTest::CodegenTest() {
    arena_init(&arena_, nullptr);
    if (setjmp(arena_.out_of_memory)) abort();
}

Module *CodegenTest::Read(const std::string &text) {
    Source *source = arena_new(&arena_, Source);
    *source = Source{"test.ir", arena_strndup(&arena_, text.data(), text.size()), text.size()};
    Diags *diags = arena_new(&arena_, Diags);
    diags_init(diags, &arena_);
    Module *m = ir_read(&arena_, diags, source);
    for (int i = 0; i < diags->list.len; i++) {
        Text t;
        text_init(&t, &arena_);
        diag_format(&t, diags->list.data[i]);
        ADD_FAILURE() << text_str(&t);
    }
    if (m && ir_verify(m)) ADD_FAILURE() << ir_verify(m);
    return m;
}

const char *CodegenTest::IsaOf(const std::string &text) {
    static const char *const some[] = {"portable", "v3", "native"};
    return getenv("AMP_VARIANTS") || !HasIsa(AMP_ISA_V3) ? nullptr : some[std::hash<std::string>()(text) / 18 % 3];
}

std::unique_ptr<LoadedModel> CodegenTest::Compile(const Module *m, const char *c_compiler, const char *isa) {
    char *bytes = nullptr;
    size_t size = 0;
    amp_error err = {};
    CodegenOptions options = {};
    options.c_compiler = c_compiler;
    options.isa = isa;
    Text c;
    text_init(&c, &arena_);
    if (codegen_c(m, nullptr, nullptr, &c, &err) || codegen_so(&c, &options, &bytes, &size, &err)) {
        ADD_FAILURE() << err.message;
        return nullptr;
    }
    auto model = std::make_unique<LoadedModel>(bytes, size);
    const amp_allocator a = amp_allocator_or_default(nullptr);
    amp_free(&a, bytes, size);
    return model->desc() ? std::move(model) : nullptr;
}

Values CodegenTest::Interpret(const Func *f, int64_t n, Values *given) {
    std::vector<InterpTensor> in, out(static_cast<size_t>(f->results.len));
    for (int i = 0; i < f->inputs.len; i++) {
        const Value *v = ir_value(f, f->inputs.data[i]);
        in.push_back(interp_tensor(&arena_, v->name, &v->shape, {n, run_length}));
        const std::vector<double> &data = (*given)[v->name];
        EXPECT_EQ(static_cast<size_t>(in.back().count), data.size()) << v->name;
        std::copy(data.begin(), data.end(), in.back().data);
    }
    InterpOptions options = {};
    options.round = true;
    amp_error err = {};
    EXPECT_EQ(interp_run(f, {n, run_length}, &options, in.data(), static_cast<int>(in.size()), out.data(), &err),
              AMP_OK)
        << err.message;
    for (const InterpTensor &t : in) (*given)[t.name].assign(t.data, t.data + t.count);
    Values results;
    for (int i = 0; i < f->results.len; i++)
        results[ir_value(f, f->results.data[i].value)->name].assign(
            out[static_cast<size_t>(i)].data, out[static_cast<size_t>(i)].data + out[static_cast<size_t>(i)].count);
    return results;
}
