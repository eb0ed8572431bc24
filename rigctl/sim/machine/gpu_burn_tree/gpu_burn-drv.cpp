// Simulated gpu-burn: starts one process per card, and one that reads temperatures; ends them; says who was faulty.
#include "gpu_burn.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

// fork(), or the end: a failed one must never become the target of a kill(), where -1 means everybody.
static int fork_or_exit() {
    int pid = fork();
    if (pid >= 0) return pid;
    std::perror("fork");
    std::exit(EXIT_FAILURE);
}

static Client start_worker(const Options &options, int device, bool report_count) {
    int ends[2];
    if (pipe(ends) != 0) {
        std::perror("pipe");
        std::exit(EXIT_FAILURE);
    }
    // The header still lies in the buffer when the output is no terminal, and each process writes its copy.
    int pid = fork_or_exit();
    if (pid == 0) {
        close(ends[0]);
        work(options, device, ends[1], report_count);
    }
    close(ends[1]);
    return Client{ends[0], pid, device};
}

static int start_temperatures(int &pid) {
    int ends[2];
    if (pipe(ends) != 0) return -1;
    pid = fork_or_exit();
    if (pid == 0) {
        close(ends[0]);
        dup2(ends[1], STDOUT_FILENO);
        execlp("nvidia-smi", "nvidia-smi", "-l", "5", "-q", "-d", "TEMPERATURE", static_cast<char *>(nullptr));
        std::fprintf(stderr, "Could not invoke nvidia-smi, no temps available\n");
        _exit(ENODEV);
    }
    close(ends[1]);
    return ends[0];
}

static std::vector<Client> start_workers(const Options &options) {
    std::vector<Client> clients;
    if (options.device >= 0) {
        clients.push_back(start_worker(options, options.device, false));
        return clients;
    }
    clients.push_back(start_worker(options, 0, true));
    int count = 0;
    if (read(clients[0].pipe, &count, sizeof count) != sizeof count || count == 0) {
        std::fprintf(stderr, "No CUDA devices\n");
        std::exit(ENODEV);
    }
    for (int device = 1; device < count; ++device) clients.push_back(start_worker(options, device, false));
    return clients;
}

static void end_workers(const std::vector<Client> &clients, int temperature_pid, int wait_s) {
    std::printf("\nKilling processes with SIGTERM (soft kill)\n");
    std::fflush(stdout);
    for (const Client &client : clients) kill(client.pid, SIGTERM);
    if (temperature_pid > 0) kill(temperature_pid, SIGTERM);
    // Always the whole time, whether somebody still runs or not.
    sleep(unsigned(wait_s));
    bool forced = false;
    for (const Client &client : clients) {
        if (waitpid(client.pid, nullptr, WNOHANG) != 0) continue;
        if (!forced) {
            std::printf("\nKilling processes with SIGKILL (force kill)\n");
            std::fflush(stdout);
        }
        forced = true;
        kill(client.pid, SIGKILL);
    }
    while (wait(nullptr) > 0 || errno == EINTR) {
    }
    std::printf("done\n");
}

int main(int count, char **arguments) {
    Options options = read_options(count, arguments);
    std::printf("Using compare file: %s\n", options.compare_file.c_str());
    std::printf("Burning for %d seconds.\n", options.seconds);
    // The list of cards comes from nvidia-smi itself, ahead of our own lines when the output is no terminal.
    if (std::system("nvidia-smi -L") == -1) std::perror("nvidia-smi");
    std::vector<Client> clients = start_workers(options);
    int temperature_pid = -1;
    int temperature_pipe = start_temperatures(temperature_pid);
    std::vector<bool> faulty = listen(clients, temperature_pipe, options);
    end_workers(clients, temperature_pid, options.term_wait_s);
    std::printf("\nTested %zu GPUs:\n", clients.size());
    for (size_t i = 0; i < clients.size(); ++i) std::printf("\tGPU %zu: %s\n", i, faulty[i] ? "FAULTY" : "OK");
    return 0;
}
