// link: none
/* io_streams: C++ streams: copies argv[1] to argv[2] line by line, then reads argv[1]
 * again in blocks of 10,000 bytes. */
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    std::ifstream in(argv[1]);
    std::ofstream out(argv[2]);
    for (std::string line; std::getline(in, line);)
        out << line << '\n';
    out.close();
    std::ifstream again(argv[1], std::ios::binary);
    std::vector<char> block(10000);
    long sum = 0;
    while (again.read(block.data(), block.size()) || again.gcount())
        sum += again.gcount();
    std::cout << sum << std::endl;
    return 0;
}
