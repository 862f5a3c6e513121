/* The program. Everything is in cli_main, so that tests can link it. */
#include "app/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
