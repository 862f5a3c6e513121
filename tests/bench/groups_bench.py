#!/usr/bin/env python3
"""What one large group's rebalance costs the heartbeats of all others: 2,000 members in 200 groups, one of them with half of
the members. Prints p50 and p99 of heartbeats while all is quiet, and while the large group rebalances without a pause, and
the ratio; then commits a second. Asserts nothing: times belong to the machine, the ratio is what counts.

    $LAB/py/bin/python tests/bench/groups_bench.py [MEMBERS GROUPS SECONDS]     (default: 2000 200 10)

SLUICE_BIN  a release build (default build/release/sluice)."""
import multiprocessing as mp
import os
import selectors
import socket
import struct
import sys
import tempfile
import time
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
os.environ.setdefault('SLUICE_BIN', str(ROOT / 'build/release/sluice'))
sys.path.insert(0, str(ROOT / 'tests/integration'))
sys.modules.setdefault('pytest', types.ModuleType('pytest'))    # the helpers below only skip with it; this is no test
from groups_raw import HEARTBEAT, OFFSET_COMMIT, SYNC_GROUP, subscription    # noqa: E402
from kafka_raw import JOIN_GROUP, decode_response, encode_request, framed    # noqa: E402
from sluice import Server    # noqa: E402

MEMBERS, GROUPS, SECONDS = [int(x) for x in (sys.argv[1:] + ['2000', '200', '10'][len(sys.argv) - 1:])]
LARGE = MEMBERS // 2


class Member:
    def __init__(self, port, group):
        self.group, self.member, self.generation, self.buffer = group, '', -1, b''
        self.s = socket.create_connection(('127.0.0.1', port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame):
        self.s.sendall(frame)

    def frame(self):
        """The next answer, or None while it is not whole."""
        while len(self.buffer) < 4 or len(self.buffer) < 4 + struct.unpack('>i', self.buffer[:4])[0]:
            try:
                b = self.s.recv(1 << 18, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            if not b:
                raise EOFError('closed')
            self.buffer += b
        n = 4 + struct.unpack('>i', self.buffer[:4])[0]
        out, self.buffer = self.buffer[4:n], self.buffer[n:]
        return out

    def join(self, turn=0):
        """turn: another one each time, so that nobody is told that nothing changed."""
        self.send(framed(encode_request(JOIN_GROUP, 3, {
            'group_id': self.group, 'session_timeout_ms': 120000, 'rebalance_timeout_ms': 60000, 'member_id': self.member,
            'protocol_type': 'consumer', 'protocols': [{'name': 'range', 'metadata': subscription('t') + struct.pack('>q', turn) + b'x' * 100}]})))

    def heartbeat_frame(self):
        return framed(encode_request(HEARTBEAT, 3, {'group_id': self.group, 'generation_id': self.generation, 'member_id': self.member}))

    def wait(self):
        self.s.setblocking(True)
        while (f := self.frame()) is None:
            selectors_wait(self.s)
        return f


def selectors_wait(s):
    with selectors.DefaultSelector() as sel:
        sel.register(s, selectors.EVENT_READ)
        sel.select()


def rebalance(members, turn):
    """All join, the leader assigns, all sync. Returns the seconds."""
    t0 = time.monotonic()
    for m in members:
        m.join(turn)
    leader = None
    for m in members:
        a = decode_response(JOIN_GROUP, 3, m.wait())[1]
        if a['error_code'] != 0:
            raise RuntimeError('join: %d' % a['error_code'])
        m.member, m.generation = a['member_id'], a['generation_id']
        if a['leader'] == a['member_id']:
            leader, listed = m, a['members']
    for m in members:
        parts = [{'member_id': x['member_id'], 'assignment': b'y' * 100} for x in listed] if m is leader else []
        m.send(framed(encode_request(SYNC_GROUP, 3, {'group_id': m.group, 'generation_id': m.generation, 'member_id': m.member, 'assignments': parts})))
    for m in members:
        a = decode_response(SYNC_GROUP, 3, m.wait())[1]
        if a['error_code'] != 0:
            raise RuntimeError('sync: %d' % a['error_code'])
    return time.monotonic() - t0


def storm(port, orders, answers):
    """A process of its own: the members of the large group."""
    members = [Member(port, 'large') for _ in range(LARGE)]
    rebalance(members, 0)
    answers.put('ready')
    orders.get()
    end, took = time.monotonic() + SECONDS, []
    while time.monotonic() < end:
        took.append(rebalance(members, len(took) + 1))
    answers.put(took)
    orders.get()


def beats(members):
    """Each member's heartbeat in turn, as many a second as two of each make. Sorted latencies in ms, and errors."""
    frames = [m.heartbeat_frame() for m in members]
    sel = selectors.DefaultSelector()
    for i, m in enumerate(members):
        sel.register(m.s, selectors.EVENT_READ, i)
    gap, end, out, bad, sent = 0.5 / len(members), time.monotonic() + SECONDS, [], 0, {}
    at, k = time.monotonic(), 0
    while time.monotonic() < end or sent:
        now = time.monotonic()
        while at <= now and now < end:
            i = k % len(members)
            k += 1
            at += gap
            if i not in sent:
                sent[i] = time.monotonic()
                members[i].send(frames[i])
        for key, _ in sel.select(max(0, min(at - time.monotonic(), 0.01))):
            f = members[key.data].frame()
            if f is not None and key.data in sent:
                out.append((time.monotonic() - sent.pop(key.data)) * 1000)
                bad += decode_response(HEARTBEAT, 3, f)[1]['error_code'] != 0
    sel.close()
    return sorted(out), bad


def commits(members):
    """Everybody commits and waits, over and over: a second's count."""
    def frame(m, n):
        return framed(encode_request(OFFSET_COMMIT, 7, {
            'group_id': m.group, 'generation_id_or_member_epoch': m.generation, 'member_id': m.member,
            'topics': [{'name': 't', 'partitions': [{'partition_index': 0, 'committed_offset': n, 'committed_metadata': ''}]}]}))
    t0, n = time.monotonic(), 0
    while time.monotonic() - t0 < SECONDS / 2:
        for m in members:
            m.send(frame(m, n))
        for m in members:
            a = decode_response(OFFSET_COMMIT, 7, m.wait())[1]['topics'][0]['partitions'][0]['error_code']
            if a != 0:
                raise RuntimeError('commit: %d' % a)
            n += 1
    return n / (time.monotonic() - t0)


def main():
    with tempfile.TemporaryDirectory() as d:
        s = Server(Path(d) / 'data', Path(d), ('--group-initial-rebalance-delay', '1s')).start()
        try:
            s.publish('t', [{'id': 1}], key='/id')
            orders, answers = mp.Queue(), mp.Queue()
            p = mp.Process(target=storm, args=(s.kafka, orders, answers), daemon=True)
            p.start()
            answers.get()
            small = []
            for g in range(GROUPS - 1):
                mine = [Member(s.kafka, 'g%d' % g) for _ in range(max(1, (MEMBERS - LARGE) // (GROUPS - 1)))]
                for m in mine:
                    m.join()
                small.append(mine)
            for mine in small:
                listed = None
                for m in mine:
                    a = decode_response(JOIN_GROUP, 3, m.wait())[1]
                    m.member, m.generation = a['member_id'], a['generation_id']
                    if a['leader'] == a['member_id']:
                        leader, listed = m, a['members']
                for m in mine:
                    parts = [{'member_id': x['member_id'], 'assignment': b'z'} for x in listed] if m is leader else []
                    m.send(framed(encode_request(SYNC_GROUP, 3, {'group_id': m.group, 'generation_id': m.generation, 'member_id': m.member, 'assignments': parts})))
                for m in mine:
                    m.wait()
            members = [m for mine in small for m in mine]
            print('%d members in %d small groups, %d in a large one' % (len(members), len(small), LARGE))
            cpu = s.cpu()
            idle, bad = beats(members)
            print('idle      heartbeats %6d  p50 %7.3f ms  p99 %7.3f ms  max %7.3f ms  errors %d  server cpu %.2f s' % (
                len(idle), idle[len(idle) // 2], idle[len(idle) * 99 // 100], idle[-1], bad, s.cpu() - cpu))
            orders.put('go')
            cpu = s.cpu()
            busy, bad = beats(members)
            took = sorted(answers.get())
            print('rebalance heartbeats %6d  p50 %7.3f ms  p99 %7.3f ms  max %7.3f ms  errors %d  server cpu %.2f s' % (
                len(busy), busy[len(busy) // 2], busy[len(busy) * 99 // 100], busy[-1], bad, s.cpu() - cpu))
            print('ratio of the p99: %.1f   (%d rebalances of %d members, median %.0f ms)' % (
                busy[len(busy) * 99 // 100] / idle[len(idle) * 99 // 100], len(took), LARGE, took[len(took) // 2] * 1000))
            print('commits a second, %d at a time, each durable: %.0f' % (64, commits(members[:64])))
            orders.put('end')
            p.join(10)
        finally:
            s.stop()


if __name__ == '__main__':
    main()
