// link: none
// libs: -static
/* kinds_static: a program without a dynamic loader: nothing can be preloaded. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char *more = malloc(1 << 20);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(3);
    int status = 0;
    (void)waitpid(pid, &status, 0);
    printf("%d %s %d\n", argc, argc > 1 ? argv[1] : "", WEXITSTATUS(status));
    free(more);
    return 21;
}
