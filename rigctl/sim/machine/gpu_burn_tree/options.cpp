// The command line. Like the real program it looks for some options anywhere in any argument.
#include "gpu_burn.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static bool has(const char *argument, const char *option) { return std::strstr(argument, option) != nullptr; }
static bool starts(const char *argument, const char *option) { return std::strncmp(argument, option, std::strlen(option)) == 0; }

static void print_help() {
    std::printf(
        "GPU Burn\n"
        "Usage: gpu-burn [OPTIONS] [TIME]\n\n"
        "-m X\tUse X MB of memory.\n"
        "-m N%%\tUse N%% of the available GPU memory.  Default is 90%%\n"
        "-d\tUse doubles\n"
        "-tc\tTry to use Tensor cores\n"
        "-l\tLists all GPUs in the system\n"
        "-i N\tExecute only on GPU N\n"
        "-c FILE\tUse FILE as compare kernel.  Default is compare.fatbin\n"
        "-stts T\tSet timeout threshold to T seconds for using SIGTERM to abort child processes before using SIGKILL.  "
        "Default is 30\n"
        "-h\tShow this help message\n\n"
        "(simulated)\n");
}

[[noreturn]] static void refuse(const char *text) {
    std::fprintf(stderr, "%s\n", text);
    std::exit(EINVAL);
}

static long read_memory(const char *text) {
    char *end = nullptr;
    long amount = std::strtol(text, &end, 10);
    if (end == text || amount <= 0) refuse("Syntax error near -m");
    if (*end == '%') {
        if (amount > 100) refuse("Syntax error near -m");
        return -amount;
    }
    return amount;
}

// The value of an option: the rest of its word or the next word. `taken` counts the words before the time.
static const char *value_of(const char *option, int &at, int &taken, int count, char **arguments) {
    taken++;
    const char *rest = arguments[at] + std::strlen(option);
    if (*rest != '\0') return rest;
    if (at + 1 >= count) refuse((std::string("Syntax error near ") + option).c_str());
    taken++;
    return arguments[++at];
}

Options read_options(int count, char **arguments) {
    Options options;
    int taken = 0;
    for (int at = 1; at < count; ++at) {
        if (has(arguments[at], "-h")) {
            print_help();
            std::exit(0);
        }
        if (has(arguments[at], "-l")) {
            list_devices();
            std::exit(0);
        }
        if (has(arguments[at], "-d")) {
            options.doubles = true;
            taken++;
        }
        if (has(arguments[at], "-tc")) {
            options.tensor_cores = true;
            taken++;
        }
        if (starts(arguments[at], "-m")) {
            options.use_memory = read_memory(value_of("-m", at, taken, count, arguments));
        } else if (starts(arguments[at], "-i")) {
            options.device = std::atoi(value_of("-i", at, taken, count, arguments));
        } else if (starts(arguments[at], "-c")) {
            options.compare_file = value_of("-c", at, taken, count, arguments);
            // The file's name was looked into too, and that is what surprises people.
            if (has(options.compare_file.c_str(), "-h")) {
                print_help();
                std::exit(0);
            }
            if (has(options.compare_file.c_str(), "-l")) {
                list_devices();
                std::exit(0);
            }
        } else if (starts(arguments[at], "-stts")) {
            options.term_wait_s = std::atoi(value_of("-stts", at, taken, count, arguments));
        }
    }
    if (count - taken < 2)
        std::printf("Run length not specified in the command line. ");
    else
        options.seconds = std::atoi(arguments[1 + taken]);
    return options;
}
