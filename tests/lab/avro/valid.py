#!/usr/bin/env python3
"""Which documents are valid by their JSON schema, as the package jsonschema sees it (formats are annotations to it). A line of standard input is
{"schema": {..}, "docs": [..]}; a line of standard output is {"valid": [true, ..]}. Runs in the venv of py-install.sh main."""
import json
import sys

import jsonschema

for line in sys.stdin:
    case = json.loads(line)
    v = jsonschema.validators.validator_for(case['schema'], default=jsonschema.Draft7Validator)(case['schema'])
    print(json.dumps({'valid': [v.is_valid(d) for d in case['docs']]}))
