// What launchers say in the environment: which variable counts, and which libraries are tried.
#include "runtime/comm/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace {

const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE", "SLURM_NTASKS",
                                 "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK",       "SLURM_PROCID"};

struct Launcher : testing::Test {
    void SetUp() override {
        for (const char *v : variables) unsetenv(v);
    }
    void TearDown() override { SetUp(); }
    static std::string Says() {
        const char *variable = nullptr;
        const int32_t size = amp_launcher_size(&variable);
        return size ? variable + std::string(" ") + std::to_string(size) : "none";
    }
    static std::vector<std::string> Libraries() {
        std::vector<std::string> names;
        for (const char *const *name = amp_launcher_libraries(); *name; name++) names.emplace_back(*name);
        return names;
    }
};

// mpirun inside an allocation of SLURM, or under torchrun's variables, starts as many as it says itself.
TEST_F(Launcher, TheNearestCounts) {
    EXPECT_EQ(Says(), "none");
    setenv("SLURM_NTASKS", "16", 1);
    EXPECT_EQ(Says(), "SLURM_NTASKS 16");
    setenv("WORLD_SIZE", "8", 1);
    EXPECT_EQ(Says(), "WORLD_SIZE 8");
    setenv("PMI_SIZE", "3", 1);
    EXPECT_EQ(Says(), "PMI_SIZE 3");
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    EXPECT_EQ(Says(), "OMPI_COMM_WORLD_SIZE 4");
}

TEST_F(Launcher, WhatIsNoNumberSaysNothing) {
    for (const char *text : {"", "many", "0", "-2", "99999999999999999999"}) {
        setenv("PMI_SIZE", text, 1);
        EXPECT_EQ(Says(), "none") << text;
    }
    setenv("SLURM_NTASKS", "2", 1);
    EXPECT_EQ(Says(), "SLURM_NTASKS 2");
}

TEST_F(Launcher, TheRankIsOfTheSameLauncher) {
    EXPECT_EQ(amp_launcher_rank(), -1);
    setenv("RANK", "5", 1);
    EXPECT_EQ(amp_launcher_rank(), -1) << "of how many?";
    setenv("SLURM_NTASKS", "16", 1);
    EXPECT_EQ(amp_launcher_rank(), -1);
    setenv("SLURM_PROCID", "0", 1);
    EXPECT_EQ(amp_launcher_rank(), 0);
    setenv("WORLD_SIZE", "8", 1);
    EXPECT_EQ(amp_launcher_rank(), 5);
    setenv("PMI_SIZE", "3", 1);
    for (const char *text : {"", "one", "-1"}) {
        setenv("PMI_RANK", text, 1);
        EXPECT_EQ(amp_launcher_rank(), -1) << text;
    }
    setenv("PMI_RANK", "2", 1);
    EXPECT_EQ(amp_launcher_rank(), 2);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    EXPECT_EQ(amp_launcher_rank(), 1);
}

TEST_F(Launcher, Libraries) {
    const std::vector<std::string> openmpi = {"libmpi.so.40"};
    const std::vector<std::string> mpich = {"libmpi_abi.so.1", "libmpich.so.12", "libmpi.so.12"};
    const std::vector<std::string> all = {"libmpi.so.40", "libmpi_abi.so.1", "libmpich.so.12", "libmpi.so.12"};
    EXPECT_EQ(Libraries(), all);
    setenv("SLURM_NTASKS", "2", 1);
    EXPECT_EQ(Libraries(), all);
    setenv("PMI_SIZE", "2", 1);
    EXPECT_EQ(Libraries(), mpich);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    EXPECT_EQ(Libraries(), openmpi);
}

} // namespace
