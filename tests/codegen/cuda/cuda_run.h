// cuda_run.h: kernels for CUDA, compiled by the real NVRTC and run by the interpreter of fakecuda (or a driver:
// kernel_device.h), launch by
// launch as a session would.
#ifndef AMP_TESTS_CODEGEN_CUDA_CUDA_RUN_H
#define AMP_TESTS_CODEGEN_CUDA_CUDA_RUN_H

#include "amp/model_abi.h"
#include "ir/places.h"
#include "tests/codegen/cuda/cuda_model.h"
#include "tests/codegen/cuda/driver_device.h"
#include "tests/codegen/cuda/kernel_device.h"

// The PTX of a module on a device that is there for it alone.
class LoadedPtx {
  public:
    LoadedPtx(const std::string &ptx, int arch);
    LoadedPtx(const LoadedPtx &) = delete;
    bool loaded() const { return device_ != nullptr; }
    KernelDevice *device() const { return device_.get(); }

  private:
    template <class Device> void Take(std::unique_ptr<Device> device) {
        if (device->loaded()) device_ = std::move(device);
    }
    std::unique_ptr<KernelDevice> device_;
};

// One run of a program: every buffer is an allocation of its own, so that one element past its end is a fault, and what
// was never written cannot be read.
class CudaRun {
  public:
    CudaRun(const CudaModule *cuda, const LoadedPtx &image, const std::string &program, int64_t n, bool watch = true);
    ~CudaRun();
    CudaRun(const CudaRun &) = delete;

    void Set(const Values &values);
    // |value| has the memory of |of| from now on.
    void Share(const std::string &value, const std::string &of);
    // The memory of input |value| is at |address| from now on, wherever that is.
    void Point(const std::string &value, uint64_t address);
    // Of the device that functions are chosen for.
    // As the runtime chooses for a device of 132 multiprocessors; |form| > 0: each kernel's choice of that number, or
    // its last.
    void SetForm(int form) { form_ = form; }
    // Row kernels hold as much as they are given.
    void SetShared(int bytes) { shared_ = bytes; }
    bool Run();
    // What went wrong in the first kernel that fails; "": nothing.
    std::string RunToFault(uint64_t seed);
    std::vector<double> Get(int i) const;
    // The buffer in which a user finds a value.
    int BufferOf(Val v) const;
    const Buffer *buffer(int i) const { return program_->func->buffers.data[i]; }
    const ExecCounters &counters() const { return counters_; }
    // Of each launch, in order.
    const std::vector<ExecCounters> &launches() const { return launches_; }
    // Bytes that a launch asked of each buffer, and of each table, by its address.
    struct Asked {
        std::map<uint64_t, uint64_t> loads, stores;
    };
    const std::vector<Asked> &asked() const { return asked_; }
    uint64_t AddressOf(int i) const { return address_[static_cast<size_t>(i)]; }
    bool IsTickets(uint64_t address) const;

  private:
    std::string Name(int i) const { return ir_value(program_->func, buffer(i)->value)->name; }
    bool IsBool(int i) const { return ir_dtype(program_->func, buffer(i)->value) == AMP_DT_BOOL; }
    int64_t Count(int i) const;
    // What fills its rows up is zero, or belongs to others.
    std::vector<double> WithoutFill(int i, const std::vector<double> &all) const;
    uint64_t Allocate(uint64_t bytes);
    uint64_t AllocateZeros(uint64_t bytes);
    // Buffers of one state are one, and so are a reshape's.
    uint64_t Shared(int i);
    void Write(int i, const std::vector<double> &data);
    uint64_t Table(const std::vector<uint64_t> &words);

    // The allocation that was asked for last, since most lanes ask for the same one.
    struct Recent {
        uint64_t start, end, *bytes;
    };

    // Each allocation is known by its start.
    static void Ask(void *user, uint64_t address, uint32_t size, bool store);

    uint32_t Blocks(const CudaLaunch &launch, int axis) const;

    uint64_t Blocks(const CudaLaunch &l) const { return uint64_t{Blocks(l, 0)} * Blocks(l, 1) * Blocks(l, 2); }

    // In form |form|: the kernel's own, from 1 on its choices.
    uint64_t Blocks(const CudaKernelEntry &e, int form) const;

    bool HasFew(const CudaKernelEntry &e, int form) const;

    bool Fits(const CudaKernelEntry &e, int form) const;

    int ChooseForm(const CudaKernelEntry &e) const;

    // A launch leaves its tickets zero for the next run.
    uint64_t Tickets(const CudaKernelEntry &e, size_t count);

    std::string Start(const CudaKernelEntry &e, uint64_t seed);

    bool Launch(const CudaKernelEntry &e);

    const CudaModule *cuda_;
    const LoadedPtx &image_;
    const CudaProgram *program_ = nullptr;
    int64_t n_;
    std::vector<uint64_t> address_, allocations_, sorted_;
    std::map<const CudaKernelEntry *, uint64_t> tickets_;
    const uint64_t multiprocessors_ = 132;
    int form_ = 0, shared_ = -1;
    ExecCounters counters_ = {};
    std::vector<ExecCounters> launches_;
    std::vector<Asked> asked_;
    Recent recent_[2] = {}; // of loads, of stores
};

class CudaRunTest : public CudaModelTest {
  protected:
    // The results of function `infer`, and what its states are afterwards. With other functions, where kernels have a
    // choice, they are the same, bit for bit.
    Values RunOnCuda(const CudaModule *cuda, const LoadedPtx &image, int64_t n, const Values &given,
                     ExecCounters *counters = nullptr);

    // The most that a kernel has; none are forced on a device.
    static int Choices(const CudaModule *cuda);

    Values RunOnDevice(const CudaModule *cuda, const LoadedPtx &image, int64_t n, const Values &given, int form,
                       ExecCounters *counters);

    // |cuda| has the bits of |alone|, in each function that its kernels may choose, and these are near the
    // interpreter's.
    void ExpectTheBitsOf(const Module *m, const CudaModule *cuda, const CudaModule *alone,
                         const std::vector<int64_t> &batches, int arch, double tolerance);

    // For the CPU, with the instruction set whose bits CUDA has too.
    std::unique_ptr<LoadedModel> CompileForCpu(const std::string &text);

    static Values RunOnCpu(const LoadedModel &model, const std::string &program, int64_t n, const Values &given);

    // Text of a planned module, its code and PTX.
    struct Built {
        Module *m = nullptr;
        const CudaModule *cuda = nullptr;
        std::unique_ptr<LoadedPtx> ptx;
    };
    Built Build(const std::string &text, bool no_fuse = false, int arch = 90);

    static std::string With(std::string text, const std::string &word, const std::string &by);

    static void ExpectSame(const Values &got, const Values &want, const std::string &what);

    // The result of CUDA is the CPU's, bit by bit.  Of 16 bits it may be a neighbour, one in a hundred, where
    // |near|: a function of prelude/near.cuh came before the rounding.
    void ExpectBitsOfCpu(const LoadedModel &cpu, const Module *m, int64_t n, const Values &given, const Values &got,
                         bool near, const std::string &what);

    // Where |got| is beside |want|, |want| becomes it.
    static void TakeNeighbours(const std::vector<double> &got, Dtype t, std::vector<double> *want);

    static bool IsNear(const CudaModule *cuda);

    // Near the float64 interpreter, fused and not; |same_bits|: as on the CPU.
    void Check(const std::string &text, const std::vector<int64_t> &batches, double tolerance, bool same_bits = false,
               int arch = 90);
};

#endif
