#include "tests/codegen/cuda/cuda_run.h"

LoadedPtx::LoadedPtx(const std::string &ptx, int arch) {
    std::string why;
    if (TestDriver::Asked()) Take(std::make_unique<DriverDevice>(ptx, &why));
    else Take(std::make_unique<InterpreterDevice>(ptx, arch, &why));
    EXPECT_NE(device_, nullptr) << why;
}

CudaRun::CudaRun(const CudaModule *cuda, const LoadedPtx &image, const std::string &program, int64_t n, bool watch)
    : cuda_(cuda), image_(image), n_(n) {
    for (int i = 0; i < cuda->programs.len; i++)
        if (program == cuda->programs.data[i].func->name) program_ = &cuda->programs.data[i];
    const Func *f = program_->func;
    for (int i = 0; i < f->buffers.len; i++) {
        const Buffer *b = f->buffers.data[i];
        address_.push_back(b->kind == BUFFER_WATCH && !watch ? 0 : Shared(i));
        if (b->kind == BUFFER_LOOK) address_.back() = AllocateZeros(sizeof(amp_model_look_counts)); // off
        if (b->kind == BUFFER_FLAG) Write(i, {0.0});
    }
}

CudaRun::~CudaRun() {
    for (uint64_t a : allocations_) EXPECT_EQ(image_.device()->Free(a), "");
}

void CudaRun::Set(const Values &values) {
    for (int i = 0; i < program_->func->buffers.len; i++) {
        auto found = values.find(Name(i));
        const BufferKind kind = buffer(i)->kind;
        if (found != values.end() && (kind == BUFFER_INPUT || kind == BUFFER_STATE)) Write(i, found->second);
    }
}

void CudaRun::Share(const std::string &value, const std::string &of) {
    for (int i = 0; i < program_->func->buffers.len; i++)
        for (int j = 0; j < program_->func->buffers.len; j++)
            if (Name(i) == value && Name(j) == of) address_[static_cast<size_t>(i)] = address_[static_cast<size_t>(j)];
}

void CudaRun::Point(const std::string &value, uint64_t address) {
    for (int i = 0; i < program_->func->buffers.len; i++)
        if (Name(i) == value) address_[static_cast<size_t>(i)] = address;
}

bool CudaRun::Run() {
    for (int i = 0; i < program_->kernels.len; i++)
        if (!Launch(program_->kernels.data[i])) return false;
    return true;
}

std::string CudaRun::RunToFault(uint64_t seed) {
    std::string wrong;
    for (int i = 0; i < program_->kernels.len && wrong.empty(); i++) wrong = Start(program_->kernels.data[i], seed);
    return wrong;
}

std::vector<double> CudaRun::Get(int i) const {
    std::vector<double> out(static_cast<size_t>(Count(i)));
    std::string bytes(out.size() * StorageSize(buffer(i)->storage), '\0');
    if (!address_[static_cast<size_t>(i)]) return {};
    EXPECT_EQ(image_.device()->Read(address_[static_cast<size_t>(i)], bytes.data(), bytes.size()), "") << Name(i);
    for (size_t j = 0; j < out.size(); j++)
        out[j] = ReadElement(bytes.data(), buffer(i)->storage, IsBool(i), static_cast<int64_t>(j));
    return buffer(i)->pitch ? WithoutFill(i, out) : out;
}

int CudaRun::BufferOf(Val v) const {
    int best = -1;
    for (int i = 0; i < program_->func->buffers.len; i++)
        if (buffer(i)->value.id == v.id && (best < 0 || buffer(i)->kind == BUFFER_OUTPUT)) best = i;
    return best;
}

bool CudaRun::IsTickets(uint64_t address) const {
    return std::any_of(tickets_.begin(), tickets_.end(), [=](const auto &e) { return e.second == address; });
}

int64_t CudaRun::Count(int i) const {
    const Shape shape = ir_buffer_shape(program_->func, buffer(i));
    int64_t count = 1;
    for (int d = 0; d < shape.rank; d++) count *= dim_eval(shape.d[d], {n_, run_length});
    return count;
}

std::vector<double> CudaRun::WithoutFill(int i, const std::vector<double> &all) const {
    const Shape *shape = ir_shape(program_->func, buffer(i)->value);
    const int64_t cols = shape->d[shape->rank - 1].mul, pitch = buffer(i)->pitch, begin = buffer(i)->column;
    std::vector<double> out;
    for (size_t j = 0; j < all.size(); j++) {
        const int64_t at = static_cast<int64_t>(j) % pitch;
        const bool is_own = at >= begin && at < begin + cols;
        if (is_own) out.push_back(all[j]);
        EXPECT_TRUE(is_own || buffer(i)->is_part || all[j] == 0.0) << Name(i) << "[" << j << "]";
    }
    return out;
}

uint64_t CudaRun::Allocate(uint64_t bytes) {
    allocations_.push_back(image_.device()->Allocate(bytes ? bytes : 1));
    EXPECT_NE(allocations_.back(), 0u);
    return allocations_.back();
}

uint64_t CudaRun::AllocateZeros(uint64_t bytes) {
    const std::string zeros(bytes, '\0');
    const uint64_t at = Allocate(bytes);
    EXPECT_EQ(image_.device()->Write(at, zeros.data(), bytes), "");
    return at;
}

uint64_t CudaRun::Shared(int i) {
    if (ir_is_renamed(program_->func, buffer(i))) return address_[buffer(i)->place - 1];
    for (int j = 0; j < i; j++)
        if (buffer(i)->kind == BUFFER_STATE && buffer(j)->kind == BUFFER_STATE && buffer(j)->state == buffer(i)->state)
            return address_[static_cast<size_t>(j)];
    return Allocate(static_cast<uint64_t>(Count(i)) * StorageSize(buffer(i)->storage));
}

void CudaRun::Write(int i, const std::vector<double> &data) {
    std::string bytes(data.size() * StorageSize(buffer(i)->storage), '\0');
    ASSERT_EQ(static_cast<int64_t>(data.size()), Count(i)) << Name(i);
    for (size_t j = 0; j < data.size(); j++)
        WriteElement(bytes.data(), buffer(i)->storage, static_cast<int64_t>(j), data[j]);
    ASSERT_EQ(image_.device()->Write(address_[static_cast<size_t>(i)], bytes.data(), bytes.size()), "") << Name(i);
}

uint64_t CudaRun::Table(const std::vector<uint64_t> &words) {
    const uint64_t at = Allocate(words.size() * 8);
    EXPECT_EQ(image_.device()->Write(at, words.data(), words.size() * 8), "");
    return at;
}

void CudaRun::Ask(void *user, uint64_t address, uint32_t size, bool store) {
    CudaRun *run = static_cast<CudaRun *>(user);
    Recent &recent = run->recent_[store];
    if (address < recent.start || address >= recent.end) {
        auto at = std::upper_bound(run->sorted_.begin(), run->sorted_.end(), address);
        if (at == run->sorted_.begin()) return;
        Asked &asked = run->asked_.back();
        recent = {at[-1], at == run->sorted_.end() ? UINT64_MAX : *at, &(store ? asked.stores : asked.loads)[at[-1]]};
    }
    *recent.bytes += size;
}

uint32_t CudaRun::Blocks(const CudaLaunch &launch, int axis) const {
    const int64_t per = launch.per[axis];
    const int64_t blocks = per ? (dim_eval(launch.extent[axis], {n_, run_length}) + per - 1) / per : 1;
    return static_cast<uint32_t>(std::max<int64_t>(blocks, 1));
}

uint64_t CudaRun::Blocks(const CudaKernelEntry &e, int form) const {
    uint64_t blocks = 0;
    for (int i = 0; i < e.parts.len; i++) blocks += Blocks(e.parts.data[i].launches.data[form]);
    return blocks;
}

bool CudaRun::HasFew(const CudaKernelEntry &e, int form) const {
    return std::any_of(e.parts.data, e.parts.data + e.parts.len, [&](const CudaPart &part) {
        const CudaLaunch &own = part.launches.data[0], &other = part.launches.data[form];
        return memcmp(own.per, other.per, sizeof own.per) && 4 * Blocks(other) < multiprocessors_;
    });
}

static bool HasOwnBlocks(const CudaKernelEntry &e, int form) {
    return std::any_of(e.parts.data, e.parts.data + e.parts.len, [&](const CudaPart &part) {
        const CudaLaunch &own = part.launches.data[0];
        return memcmp(own.per, part.launches.data[form].per, sizeof own.per) != 0;
    });
}

bool CudaRun::Fits(const CudaKernelEntry &e, int form) const {
    return e.forms.data[form].launch.shared_bytes + AMP_CUDA_FIXED_SHARED <= image_.device()->SharedOfBlock();
}

int CudaRun::ChooseForm(const CudaKernelEntry &e) const {
    if (form_) return std::min(form_, e.forms.len - 1);
    for (int i = 1; i < e.forms.len; i++) {
        const bool fills = Blocks(e, i) >= multiprocessors_ && !HasFew(e, i);
        if (Fits(e, i) && (fills || !HasOwnBlocks(e, i))) return i;
    }
    return 0;
}

uint64_t CudaRun::Tickets(const CudaKernelEntry &e, size_t count) {
    auto found = tickets_.find(&e);
    if (found != tickets_.end()) return found->second;
    return tickets_[&e] = Table(std::vector<uint64_t>(count));
}

std::string CudaRun::Start(const CudaKernelEntry &e, uint64_t seed) {
    std::vector<uint64_t> operands, params;
    for (int i = 0; i < e.operands.len; i++) {
        const Buffer *b = buffer(static_cast<int>(e.operands.data[i]) - 1);
        operands.push_back(address_[e.operands.data[i] - 1] +
                           static_cast<uint64_t>(b->column) * StorageSize(b->storage));
    }
    if (e.body.operand_table) params.push_back(Table(operands));
    else params = operands;
    params.push_back(static_cast<uint64_t>(n_));
    const CudaSizes &sizes = e.body.sizes;
    for (int i = 0; i < sizes.len; i++)
        params.push_back(static_cast<uint64_t>(dim_eval(sizes.data[i], {n_, run_length})));
    if (e.batch_elements.len) {
        std::vector<uint64_t> elements;
        for (int i = 0; i < e.batch_elements.len; i++)
            elements.push_back(static_cast<uint64_t>(dim_eval(e.batch_elements.data[i], {n_, run_length})));
        params.push_back(Table(elements));
    }
    if (e.tickets) params.push_back(Tickets(e, static_cast<size_t>(e.tickets)));
    KernelLaunch launch = {};
    const int form = ChooseForm(e);
    const CudaChoice &used = e.forms.data[form];
    if (e.body.partials) {
        const size_t blocks = Blocks(e, form);
        params.push_back(Tickets(e, blocks));
        params.push_back(Table(std::vector<uint64_t>(blocks * CUDA_PARTIAL_BYTES / 8)));
    }
    uint64_t first = 0;
    const bool has_places = e.parts.len > 1 || e.parts.data[0].step;
    for (int i = 0; i < e.parts.len && has_places; i++) {
        const CudaLaunch &part = e.parts.data[i].launches.data[form];
        for (uint64_t place : {first, uint64_t{Blocks(part, 0)}, uint64_t{Blocks(part, 1)}}) params.push_back(place);
        first += Blocks(part);
    }
    launch.entry = cuda_->functions.data[used.function].entry;
    for (int a = 0; a < 3; a++) {
        launch.grid[a] = Blocks(used.launch, a);
        launch.block[a] = static_cast<uint32_t>(used.launch.block[a]);
    }
    if (has_places) {
        launch.grid[0] = static_cast<uint32_t>(Blocks(e, form));
        launch.grid[1] = launch.grid[2] = 1;
    }
    launch.dynamic_shared = static_cast<uint32_t>(shared_ < 0 ? used.launch.shared_bytes : shared_);
    launch.params = params;
    launch.seed = seed;
    sorted_ = allocations_;
    std::sort(sorted_.begin(), sorted_.end());
    launch.asked = Ask;
    launch.asked_user = this;
    launches_.emplace_back();
    asked_.emplace_back();
    recent_[0] = recent_[1] = {};
    const std::string wrong = image_.device()->Launch(launch, &launches_.back());
    exec_counters_add(&counters_, &launches_.back());
    return wrong;
}

bool CudaRun::Launch(const CudaKernelEntry &e) {
    const std::string wrong = Start(e, 3);
    EXPECT_EQ(wrong, "") << cuda_->functions.data[e.forms.data[0].function].source;
    return wrong.empty();
}

Values CudaRunTest::RunOnCuda(const CudaModule *cuda, const LoadedPtx &image, int64_t n, const Values &given,
                              ExecCounters *counters) {
    const Values got = RunOnDevice(cuda, image, n, given, 0, counters);
    for (int form = 1; form <= Choices(cuda); form++)
        EXPECT_EQ(RunOnDevice(cuda, image, n, given, form, nullptr), got) << "choice " << form;
    return got;
}

int CudaRunTest::Choices(const CudaModule *cuda) {
    const CudaProgram &p = cuda->programs.data[0];
    int most = 0;
    for (int i = 0; i < p.kernels.len && !TestDriver::Asked(); i++)
        most = std::max(most, p.kernels.data[i].forms.len - 1);
    return most;
}

Values CudaRunTest::RunOnDevice(const CudaModule *cuda, const LoadedPtx &image, int64_t n, const Values &given,
                                int form, ExecCounters *counters) {
    const Func *f = cuda->programs.data[0].func;
    CudaRun run(cuda, image, f->name, n);
    run.SetForm(form);
    run.Set(given);
    Values got;
    if (!run.Run()) return got;
    for (int i = 0; i < f->results.len; i++) {
        const int buffer = run.BufferOf(f->results.data[i].value);
        EXPECT_GE(buffer, 0) << f->results.data[i].name;
        if (buffer >= 0) got[f->results.data[i].name] = run.Get(buffer);
    }
    for (int i = 0; i < f->buffers.len; i++)
        if (run.buffer(i)->kind == BUFFER_STATE)
            got[std::string("state ") + ir_value(f, run.buffer(i)->value)->name] = run.Get(i);
    if (counters) *counters = run.counters();
    return got;
}

void CudaRunTest::ExpectTheBitsOf(const Module *m, const CudaModule *cuda, const CudaModule *alone,
                                  const std::vector<int64_t> &batches, int arch, double tolerance) {
    const LoadedPtx image(Ptx(cuda, arch, false), arch), single(Ptx(alone, arch, false), arch);
    if (HasFailure()) return;
    const Func *f = m->funcs.data[0];
    for (int64_t n : batches) {
        const Values given = Draw(m, f, n);
        Values after = given;
        const Values want = Interpret(f, n, &after), of_each = RunOnDevice(alone, single, n, given, 0, nullptr);
        for (int form = 0; form <= Choices(cuda); form++)
            EXPECT_EQ(RunOnDevice(cuda, image, n, given, form, nullptr), of_each) << "n " << n << " form " << form;
        for (int i = 0; i < f->results.len; i++)
            Compare(of_each.at(f->results.data[i].name), want.at(ir_value(f, f->results.data[i].value)->name),
                    tolerance, f->results.data[i].name);
    }
}

std::unique_ptr<LoadedModel> CudaRunTest::CompileForCpu(const std::string &text) {
    const Module *m = Planned(text, false, false);
    char *bytes = nullptr;
    size_t size = 0;
    amp_error err = {};
    CodegenOptions options = {};
    options.isa = "v3";
    if (!InLongTests() && !TestDriver::Asked()) options.c_compiler = kUnoptimised;
    ::Text c;
    text_init(&c, &arena_);
    if (!m || codegen_c(m, nullptr, nullptr, &c, &err) || codegen_so(&c, &options, &bytes, &size, &err)) {
        ADD_FAILURE() << err.message;
        return nullptr;
    }
    auto model = std::make_unique<LoadedModel>(bytes, size);
    const amp_allocator a = amp_allocator_or_default(nullptr);
    amp_free(&a, bytes, size);
    return model;
}

Values CudaRunTest::RunOnCpu(const LoadedModel &model, const std::string &program, int64_t n, const Values &given) {
    Values got;
    ProgramRun run(model, program, AMP_ISA_V3, n);
    run.Set(given);
    run.Run();
    auto *of = model.Program(program);
    auto *results = static_cast<const amp_model_result *>(of->results.data);
    for (uint32_t i = 0; i < of->results.count; i++)
        got[results[i].name] = run.Get(static_cast<uint32_t>(results[i].buffer));
    return got;
}

CudaRunTest::Built CudaRunTest::Build(const std::string &text, bool no_fuse, int arch) {
    Built b;
    b.m = PlannedForCuda(text, no_fuse);
    if (b.m) b.cuda = Emit(b.m);
    if (b.cuda) b.ptx = std::make_unique<LoadedPtx>(Ptx(b.cuda, arch, false), arch);
    return b;
}

std::string CudaRunTest::With(std::string text, const std::string &word, const std::string &by) {
    for (size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, word.size(), by);
    return text;
}

void CudaRunTest::ExpectSame(const Values &got, const Values &want, const std::string &what) {
    for (const auto &entry : want) {
        auto found = got.find(entry.first);
        ASSERT_NE(found, got.end()) << what << entry.first;
        ASSERT_EQ(found->second.size(), entry.second.size()) << what << entry.first;
        for (size_t i = 0; i < entry.second.size(); i++) {
            const double a = found->second[i], b = entry.second[i];
            ASSERT_TRUE((a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b)))
                << what << entry.first << "[" << i << "]: " << a << " on CUDA, " << b << " on the CPU";
        }
    }
}

void CudaRunTest::ExpectBitsOfCpu(const LoadedModel &cpu, const Module *m, int64_t n, const Values &given,
                                  const Values &got, bool near, const std::string &what) {
    const Func *f = m->funcs.data[0];
    Values want = RunOnCpu(cpu, f->name, n, given);
    for (int i = 0; near && i < f->results.len; i++) {
        const Result &r = f->results.data[i];
        const Dtype t = ir_dtype(f, r.value);
        if (t == AMP_DT_F16 || t == AMP_DT_BF16) TakeNeighbours(got.at(r.name), t, &want.at(r.name));
    }
    ExpectSame(got, want, what);
}

void CudaRunTest::TakeNeighbours(const std::vector<double> &got, Dtype t, std::vector<double> *want) {
    const int digits = t == AMP_DT_F16 ? 10 : 7, least = t == AMP_DT_F16 ? -24 : -133;
    size_t taken = 0;
    for (size_t i = 0; i < want->size() && i < got.size(); i++) {
        const double a = got[i], b = (*want)[i];
        if (a == b || !std::isfinite(a) || !std::isfinite(b)) continue;
        const int exponent = std::ilogb(std::max(std::abs(a), std::abs(b)));
        if (std::abs(a - b) > std::ldexp(1.0, std::max(exponent - digits, least))) continue;
        (*want)[i] = a;
        taken++;
    }
    EXPECT_LE(taken * 100, want->size() + 99);
}

bool CudaRunTest::IsNear(const CudaModule *cuda) {
    for (int i = 0; i < cuda->functions.len; i++)
        if (strstr(cuda->functions.data[i].source, " near_")) return true;
    return false;
}

void CudaRunTest::Check(const std::string &text, const std::vector<int64_t> &batches, double tolerance, bool same_bits,
                        int arch) {
    std::unique_ptr<LoadedModel> cpu;
    if (same_bits && HasIsa(AMP_ISA_V3)) cpu = CompileForCpu(text);
    for (bool no_fuse : {false, true}) {
        if (no_fuse && !UnfusedToo(text)) break;
        Module *m = PlannedForCuda(text, no_fuse);
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = nullptr;
        amp_error err = {};
        ASSERT_EQ(codegen_cuda(m, &cuda, &err), AMP_OK) << err.message << Print(m);
        const LoadedPtx image(Ptx(cuda, arch, false), arch);
        if (HasFailure()) return;
        for (int64_t n : batches) {
            const Func *f = m->funcs.data[0];
            const Values given = Draw(m, f, n);
            Values after = given;
            const Values want = Interpret(f, n, &after), got = RunOnCuda(cuda, image, n, given);
            const std::string what = std::string(no_fuse ? "not fused, " : "fused, ") + "n " + std::to_string(n) + ", ";
            for (int i = 0; i < f->results.len && !HasFailure(); i++) {
                const Result &r = f->results.data[i];
                Compare(got.at(r.name), want.at(ir_value(f, r.value)->name), tolerance, what + r.name);
            }
            if (cpu) ExpectBitsOfCpu(*cpu, m, n, given, got, IsNear(cuda), what);
            if (HasFailure()) {
                ADD_FAILURE() << Functions(cuda);
                return;
            }
        }
    }
}
