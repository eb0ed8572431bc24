// Simulated gpu-burn: what its parts share.
#ifndef GPU_BURN_H
#define GPU_BURN_H

#include <string>
#include <vector>

const int MATRIX = 8192;
const double FLOPS_PER_PRODUCT = 2.0 * MATRIX * MATRIX * MATRIX;

struct Options {
    int seconds = 10;
    bool doubles = false;
    bool tensor_cores = false;
    long use_memory = -90;  // MB, or a negated percentage of what is free
    int device = -1;        // -1: all of them
    int term_wait_s = 30;   // between SIGTERM and SIGKILL
    std::string compare_file = "compare.fatbin";
};

// Read the command line. Prints the help or the cards and ends the program where an argument asks for it.
Options read_options(int count, char **arguments);

// Print the cards, as `-l` does.
void list_devices();

// The work of one card, in a process of its own: never returns. `report_count` writes the number of devices first.
[[noreturn]] void work(const Options &options, int device, int pipe, bool report_count);

struct Client {
    int pipe;
    int pid;
    int device;
};

// Print progress until the time is over; returns which cards were faulty. Ends the program when no process lives.
std::vector<bool> listen(const std::vector<Client> &clients, int temperature_pipe, const Options &options);

#endif
