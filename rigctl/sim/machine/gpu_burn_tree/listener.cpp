// Progress: one line, written over and over, whenever a card's process or the temperature reader says something.
#include "gpu_burn.h"

#include <sys/select.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// What an unread integer may hold: the count of a card whose process died means nothing.
const int UNREAD = 1796043519;

namespace {
struct Seen {
    int products = 0;
    int errors = 0;
    double gflops = 0;
    double at_s;
    int temperature = 0;
    bool faulty = false;
    bool open = true;
    bool dead() const { return products == -1; }
};

class Progress {
  public:
    Progress(const std::vector<Client> &clients, int temperature_pipe, const Options &options)
        : clients_(clients), temperature_pipe_(temperature_pipe), options_(options), seen_(clients.size()), start_s_(now_s()) {
        for (Seen &one : seen_) one.at_s = start_s_;
    }

    std::vector<bool> run() {
        while (true) {
            // As in the real program there is no time limit here: nobody speaks, nobody looks at the clock.
            if (wait()) print();
            bool alive = false;
            for (const Seen &one : seen_) alive = alive || !one.dead();
            if (!alive) {
                std::fprintf(stderr, "\n\nNo clients are alive!  Aborting\n");
                std::fflush(stdout);
                std::exit(ENOMEDIUM);
            }
            if (elapsed_s() >= options_.seconds) break;
        }
        std::vector<bool> faulty;
        for (const Seen &one : seen_) faulty.push_back(one.faulty);
        return faulty;
    }

  private:
    static double now_s() {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
    double elapsed_s() const { return now_s() - start_s_; }

    bool wait() {
        fd_set ready;
        FD_ZERO(&ready);
        int highest = temperature_pipe_;
        if (temperature_pipe_ >= 0) FD_SET(temperature_pipe_, &ready);
        for (size_t i = 0; i < clients_.size(); ++i) {
            if (!seen_[i].open) continue;
            FD_SET(clients_[i].pipe, &ready);
            highest = std::max(highest, clients_[i].pipe);
        }
        if (select(highest + 1, &ready, nullptr, nullptr, nullptr) < 0) return false;
        for (size_t i = 0; i < clients_.size(); ++i)
            if (seen_[i].open && FD_ISSET(clients_[i].pipe, &ready)) read_client(i);
        if (temperature_pipe_ >= 0 && FD_ISSET(temperature_pipe_, &ready)) read_temperature();
        return true;
    }

    void read_client(size_t i) {
        Seen &one = seen_[i];
        int products = 0, errors = 0;
        ssize_t got = read(clients_[i].pipe, &products, sizeof products);
        if (got == ssize_t(sizeof products)) got = read(clients_[i].pipe, &errors, sizeof errors);
        if (got != ssize_t(sizeof errors)) {
            std::fprintf(stderr, "read[%zu] error %zd\n", i, got);
            one.products = -1, one.gflops = 0, one.errors = UNREAD, one.open = false;
            return;
        }
        double now = now_s();
        one.products += products;
        one.errors += errors;
        one.gflops = products * FLOPS_PER_PRODUCT / 1e9 / (now - one.at_s);
        one.at_s = now;
    }

    // Lines of nvidia-smi; the temperatures come in the order of the cards.
    void read_temperature() {
        char buffer[4096];
        ssize_t got = read(temperature_pipe_, buffer, sizeof buffer);
        if (got <= 0) {
            temperature_pipe_ = -1;
            return;
        }
        text_.append(buffer, size_t(got));
        for (size_t end; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
            std::string line = text_.substr(0, end);
            if (line.find("Attached GPUs") != std::string::npos) card_ = 0;
            if (line.find("Gpu") == std::string::npos && line.find("GPU Current Temp") == std::string::npos) continue;
            const char *colon = std::strchr(line.c_str(), ':');
            size_t at = options_.device >= 0 ? card_ - size_t(options_.device) : card_;
            if (colon != nullptr && at < seen_.size()) seen_[at].temperature = std::atoi(colon + 1);
            card_++;
        }
    }

    void print() {
        double share = options_.seconds > 0 ? 100.0 * elapsed_s() / options_.seconds : 100.0;
        share = std::min(share, 100.0);
        std::printf("\r%.1f%%  proc'd: ", share);
        for (size_t i = 0; i < seen_.size(); ++i)
            std::printf("%d (%.0f Gflop/s) %s", seen_[i].products, seen_[i].gflops, between(i));
        std::printf("  errors: ");
        for (size_t i = 0; i < seen_.size(); ++i) {
            const char *note = seen_[i].dead() ? " (DIED!)" : seen_[i].errors != 0 ? " (WARNING!)" : "";
            std::printf("%d %s%s", seen_[i].errors, note, between(i));
        }
        std::printf("  temps: ");
        for (size_t i = 0; i < seen_.size(); ++i) {
            if (seen_[i].temperature != 0)
                std::printf("%d C %s", seen_[i].temperature, between(i));
            else
                std::printf("-- %s", between(i));
        }
        std::fflush(stdout);
        if (share >= next_summary_) summarise(share);
    }

    // Every tenth of the time: a card with errors since the last summary is faulty from now on, and counting restarts.
    void summarise(double share) {
        next_summary_ = share + 10.0;
        std::printf("\n\tSummary at:   ");
        std::fflush(stdout);
        if (std::system("date") != 0) std::printf("\n");
        std::printf("\n");
        std::fflush(stdout);
        for (Seen &one : seen_) {
            if (one.errors != 0 && !one.dead()) one.faulty = true;
            if (!one.dead()) one.errors = 0;
        }
    }

    const char *between(size_t i) const { return i + 1 < seen_.size() ? "- " : ""; }

    const std::vector<Client> &clients_;
    int temperature_pipe_;
    const Options &options_;
    std::vector<Seen> seen_;
    double start_s_, next_summary_ = 10.0;
    std::string text_;
    size_t card_ = 0;
};
}  // namespace

std::vector<bool> listen(const std::vector<Client> &clients, int temperature_pipe, const Options &options) {
    return Progress(clients, temperature_pipe, options).run();
}
