/* The flags of `serve` and `check`, made from the settings table. */
#pragma once

#include "app/cli.h"
#include "app/serve_config.h"

/* Parses the command line, loads all sources and converts. 0; 1: help was printed; E_INVALID: the
 * command line is wrong; E_SYNTAX: settings are; every fault was printed to stderr. After 0 the
 * caller frees settings with config_fini. */
MUST_USE int serve_options(const struct cli_command *cmd, int argc, char **argv,
                           struct config *settings, struct serve_config *config,
                           struct cli_args *args);
