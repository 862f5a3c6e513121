"""The readers of tests/lab/registry as processes: eight registry clients that read topics end to end. Catalogs of random
collections by avro_model, so that what a client decodes is compared with what the JSON source says."""
import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

import avro_model
from clients import LAB, LAB_DIR, PY

READERS = LAB_DIR / 'registry'
HERE = LAB / 'registry'
JAVA = ['java', '-Xmx256m', '-XX:+UseSerialGC', '-cp', '%s:%s/*' % (HERE / 'java', HERE / 'java/libs'), 'RegistryRead']
CLIENTS = {    # name: (what installs it, command)
    'confluent-kafka': ('python', [PY['main'], READERS / 'read.py', 'confluent']),
    'python-schema-registry-client': ('python', [PY['main'], READERS / 'read.py', 'src']),
    'franz-go': ('go', [HERE / 'bin/registry-go', 'franz']),
    'hamba': ('go', [HERE / 'bin/registry-go', 'hamba']),
    'java-http': ('java', JAVA + ['http']),
    'java-spring': ('java', JAVA + ['spring']),
    'kafkajs': ('node', ['node', READERS / 'node/read.js', 'kafkajs']),
    'confluent-node': ('node', ['node', READERS / 'node/read.js', 'confluent']),
}
KEPT_ONLY = {    # those that decode bytes, but read no topic
    'schema_registry_converter': ('rust', [HERE / 'bin/registry-rust']),
}
LIMIT_S = 120


def install(what):
    """Once a run; what cannot be installed is skipped by name."""
    if what not in install.done:
        script = ['py-install.sh', 'main'] if what == 'python' else ['registry-install.sh', what]
        p = subprocess.run([LAB_DIR / script[0], *script[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)
        install.done[what] = None if p.returncode == 0 else p.stdout.decode()[-200:].replace('\n', ' ')
    if install.done[what] is not None:
        pytest.skip('not installed: %s: %s' % (what, install.done[what]))


install.done = {}


class Reader:
    """A client's process and the lines that it has printed so far."""

    def __init__(self, client, kafka, registry, topics, count, login, stdin=None):
        tool, cmd = {**CLIENTS, **KEPT_ONLY}[client]
        install(tool)
        self.client, self.lines, self.ended = client, [], False
        self.more = threading.Condition()
        self.proc = subprocess.Popen([str(x) for x in [*cmd, kafka, registry, topics, count]], stderr=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                                     env=dict(os.environ, LAB=str(LAB), LAB_LOGIN=json.dumps(login)))
        self.threads = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._drain, daemon=True)]
        self.errors = b''
        for t in self.threads:
            t.start()
        if stdin is not None:
            self.proc.stdin.write(stdin)
            self.proc.stdin.close()

    def _read(self):
        for line in self.proc.stdout:
            if not line.endswith(b'\n'):
                break    # cut off by its end
            with self.more:
                self.lines.append(json.loads(line))
                self.more.notify_all()
        with self.more:
            self.ended = True
            self.more.notify_all()

    def _drain(self):
        for line in self.proc.stderr:
            if len(self.errors) < 6000:    # the first ones say why
                self.errors += line

    def wait(self, lines, seconds=LIMIT_S):
        """Until it has printed so many lines."""
        end = time.monotonic() + seconds
        with self.more:
            while len(self.lines) < lines:
                left = end - time.monotonic()
                assert left > 0 and not self.ended, '%s: %d of %d lines: %s' % (self.client, len(self.lines), lines,
                                                                              self.errors.decode(errors='replace'))
                self.more.wait(left)
        return self.lines

    def all(self, seconds=LIMIT_S):
        """Until it ends, with 0."""
        try:
            code = self.proc.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end()
            raise AssertionError('%s: not done after %d s, %d lines: %s' % (
                self.client, seconds, len(self.lines), self.errors.decode(errors='replace'))) from None
        for t in self.threads:
            t.join(10)
        assert code == 0, '%s: exit %d: %s' % (self.client, code, self.errors.decode(errors='replace'))
        return self.lines

    def end(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait(10)


class Random:
    """A random collection with its documents, in the order in which they are published: [(text, value, key)]."""

    def __init__(self, seed, count):
        r, t, key, case = avro_model.collection(seed)
        self.definition = {'schema': case['schema'], 'key': case['key']}
        self.docs = []
        for _ in range(count):
            tokens, got = t.value(r)
            self.docs.append((avro_model.compact(tokens), got, {'_flow_key': {'p%d' % (i + 1): got[n] for i, n in enumerate(key)}}))


def collections(seed, count):
    """Endless. Without names that hold a NUL: a catalog file refuses them."""
    while True:
        m = Random(seed, count)
        if '\\u0000' not in json.dumps(m.definition):
            yield m
        seed += 1


def write_catalog(path, collections, tasks):
    """collections: {name: definition}; tasks: {task: (token, {topic: collection}, config)}."""
    doc = {'collections': collections, 'materializations': {
        task: {'endpoint': {'dekaf': {'variant': 'test', 'config': {'token': token, **config}}},
               'bindings': [{'source': c, 'resource': {'topic_name': t}, 'fields': {'recommended': 1, 'exclude': ['flow_published_at']}}
                            for t, c in topics.items()]}
        for task, (token, topics, config) in tasks.items()}}
    tmp = Path(str(path) + '.tmp')
    tmp.write_text(json.dumps(doc))
    tmp.rename(path)
    return str(path)
