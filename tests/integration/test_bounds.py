"""What a peer can make the server hold: answers that are not read, requests that wait."""
import struct
import time

from kafka_raw import FETCH, LATEST, Conn, decode_batches, framed
from sluice import SANITIZER_ENV

# A sanitizer keeps freed memory for a while; what is measured here is what the server holds.
LEAN = {'ASAN_OPTIONS': SANITIZER_ENV['ASAN_OPTIONS'] + ':quarantine_size_mb=1:thread_local_quarantine_size_kb=64'
        ':allocator_release_to_os_interval_ms=100'}

MIB = 1 << 20


def big_topic(s, topic, mib=24):
    for i in range(mib // 4):
        s.publish(topic, b''.join(b'{"i":%d,"pad":"%s"}\n' % (n, b'x' * 9980) for n in range(i * 420, i * 420 + 420)), timeout=60)


def test_one_connection_that_does_not_read_holds_one_output_budget(make_server, topic):
    s = make_server('--cache-bytes', '1MiB', '--conn-output-bytes', '1MiB', '--stall-timeout', '60s', env=LEAN)
    big_topic(s, topic)
    with Conn(s.kafka, timeout=60) as c:
        end = c.list_offset(topic, 0, LATEST)['offset']
        before = s.rss()
        ids = [c.fetch_start(topic, {0: end * i // 32}, 4, max_wait_ms=10000, partition_max_bytes=4 * MIB) for i in range(32)]
        time.sleep(3)
        grown = s.rss() - before
        assert grown < 28 * MIB, '%d bytes for a budget of 1 MiB' % grown
        for i, n in enumerate(ids):    # and whoever reads at last gets all answers, in order
            p = c.finish(FETCH, 4, n)['responses'][0]['partitions'][0]
            assert p['error_code'] == 0 and decode_batches(p['records'] or b''), 'answer %d holds nothing' % i


def test_doubled_partitions_of_a_waiting_fetch_cost_nothing_more(make_server, topic):
    s = make_server(env=LEAN)
    s.publish(topic, [{'a': 1}])
    with Conn(s.kafka, timeout=60) as c:
        head = c.list_offset(topic, 0, LATEST)['offset']
        part = struct.pack('>iqi', 0, head, 1 << 20)
        body = struct.pack('>iiiiB', -1, 30000, 1, MIB, 0) + struct.pack('>i', 1) + struct.pack('>h', len(topic)) + topic.encode()
        body += struct.pack('>i', 3900) + part * 3900
        before = s.rss()
        for i in range(32):
            frame = struct.pack('>hhih', 1, 4, 1000 + i, -1) + body
            c.s.sendall(framed(frame))
        time.sleep(2)
        grown = s.rss() - before
        assert grown < 24 * MIB, '%d bytes for 32 waiting requests' % grown
