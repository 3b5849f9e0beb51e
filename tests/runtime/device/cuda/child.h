// child.h: running a part of a test in a process of its own, for what cannot be undone: a driver that stays loaded, an
// environment, a limit.
#ifndef AMP_TESTS_RUNTIME_DEVICE_CUDA_CHILD_H
#define AMP_TESTS_RUNTIME_DEVICE_CUDA_CHILD_H

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

// What |part| returned; a child that dies instead is a failure of the test.
inline std::string InChild(const std::function<std::string()> &part) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    pid_t pid = fork();
    if (pid == 0) {
        std::string text = part();
        _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string text;
    char part_of[512];
    for (ssize_t n; (n = read(ends[0], part_of, sizeof part_of)) > 0;) text.append(part_of, n);
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child ended with status " << status;
    return text;
}

#endif
