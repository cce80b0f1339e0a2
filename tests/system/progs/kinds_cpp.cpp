// link: none
// libs: -lpthread
/* kinds_cpp: threads, exceptions, containers, thread variables with destructors. */
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Counter {
    std::vector<int> seen;
    ~Counter()
    {
        seen.clear();
    }
};
static thread_local Counter counter;

static long work(int seed)
{
    std::map<std::string, std::unique_ptr<int>> map;
    for (int i = 0; i < 500; i++) {
        counter.seen.push_back(i);
        map[std::to_string(i * seed)] = std::make_unique<int>(i);
    }
    try {
        throw std::runtime_error("x");
    } catch (const std::exception &e) {
        return (long)map.size() + e.what()[0];
    }
}

int main()
{
    std::vector<std::thread> threads;
    std::vector<long> sums(16);
    for (int i = 0; i < 16; i++)
        threads.emplace_back([&sums, i] { sums[(size_t)i] = work(i + 1); });
    long sum = 0;
    for (int i = 0; i < 16; i++) {
        threads[(size_t)i].join();
        sum += sums[(size_t)i];
    }
    std::printf("%ld\n", sum);
    return 22;
}
