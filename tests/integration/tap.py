"""A proxy between real clients and the server that knows what it carries: which client fetched from where, how often. The
server must advertise the tap's address. With stand_in=True it also plays the group coordinator, one member a group, for
clients that have no consumer without a group (KafkaJS) against a server that has no groups yet.

It runs in a thread of its own; what tests read is copied under the GIL."""
import asyncio
import struct
import threading
import time
from collections import namedtuple

from kafka_raw import API_VERSIONS, APIS, FETCH, FIND_COORDINATOR, Reader, Writer, get_struct, put_struct

Fetch = namedtuple('Fetch', 'when client version offsets incremental')    # offsets: {partition: offset} as the server knows them
OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 8, 9, 11, 12, 13, 14
STAND_IN = {OFFSET_COMMIT: (2, 2), OFFSET_FETCH: (1, 1), FIND_COORDINATOR: (0, 1), JOIN_GROUP: (0, 1), HEARTBEAT: (0, 0),
            LEAVE_GROUP: (0, 0), SYNC_GROUP: (0, 0)}


class Tap:
    def __init__(self, stand_in=False):
        self.stand_in, self.target, self.node_id = stand_in, None, 1
        self.fetches, self.requests, self.groups = [], [], {}
        self.loop = asyncio.new_event_loop()
        self.up = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.up.wait(10)

    @property
    def address(self):
        return '127.0.0.1:%d' % self.port

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    def clear(self):
        self.fetches, self.requests = [], []

    def of(self, client):
        return [f for f in list(self.fetches) if f.client == client]

    def _run(self):
        asyncio.set_event_loop(self.loop)

        async def begin():
            server = await asyncio.start_server(self._serve, '127.0.0.1', 0, limit=1 << 26)
            self.port = server.sockets[0].getsockname()[1]
            self.up.set()
        self.loop.run_until_complete(begin())
        self.loop.run_forever()
        for t in asyncio.all_tasks(self.loop):
            t.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))

    async def _serve(self, cr, cw):
        try:
            br, bw = await asyncio.open_connection('127.0.0.1', self.target, limit=1 << 26)
        except OSError:
            cw.close()
            return
        pending, known = {}, {}

        async def frame(r):
            head = await r.readexactly(4)
            return await r.readexactly(struct.unpack('>i', head)[0])

        def send(w, f):
            w.write(struct.pack('>i', len(f)) + f)

        async def upward():
            while True:
                f = await frame(cr)
                key, version, corr = struct.unpack('>hhi', f[:8])
                r = Reader(f, 8)
                n = r.int('h')
                client = bytes(r.take(n)).decode() if n > 0 else ''
                self.requests.append((time.monotonic(), client, key, version))
                if key == FETCH:
                    self._note_fetch(client, version, r, known)
                if self.stand_in and key in STAND_IN:
                    send(cw, struct.pack('>i', corr) + self._answer(key, version, r))
                    await cw.drain()
                    continue
                pending[corr] = (key, version)
                send(bw, f)
                await bw.drain()

        async def downward():
            while True:
                f = await frame(br)
                key, version = pending.pop(struct.unpack('>i', f[:4])[0], (None, 0))
                if self.stand_in and key == API_VERSIONS:
                    f = self._versions(f, version)
                send(cw, f)
                await cw.drain()
        tasks = [asyncio.ensure_future(upward()), asyncio.ensure_future(downward())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for t in tasks:
            if t.done() and not t.cancelled() and t.exception() and not isinstance(t.exception(), (asyncio.IncompleteReadError, OSError)):
                print('tap:', repr(t.exception()))
            t.cancel()
        cw.close()
        bw.close()

    def _note_fetch(self, client, version, r, known):
        api = APIS[FETCH]
        flex = version >= api.flex
        if flex:
            for _ in range(r.varint()):
                r.varint()
                r.take(r.varint())
        q = get_struct(r, api.request, version, flex)
        if q.get('session_epoch', -1) <= 0:
            known.clear()
        for t in q['topics']:
            for p in t['partitions']:
                known[p['partition']] = p['fetch_offset']
        for t in q.get('forgotten_topics_data', []):
            for p in t['partitions']:
                known.pop(p, None)
        if q.get('session_id', 0) and q.get('session_epoch', -1) < 0:
            return    # a farewell: closes its session
        self.fetches.append(Fetch(time.monotonic(), client, version, dict(known), q.get('session_epoch', -1) > 0))

    # --- the stand-in coordinator -------------------------------------------------------------------------------------
    def _versions(self, f, version):
        api = APIS[API_VERSIONS]
        if struct.unpack('>h', f[4:6])[0] != 0:
            return f
        body = get_struct(Reader(f, 4), api.response, version, version >= 3)
        keys = [k for k in body['api_keys'] if k['api_key'] not in STAND_IN]
        keys += [{'api_key': k, 'min_version': lo, 'max_version': hi} for k, (lo, hi) in STAND_IN.items()]
        w = Writer()
        w.b += f[:4]
        put_struct(w, api.response, dict(body, api_keys=sorted(keys, key=lambda k: k['api_key'])), version, version >= 3)
        return bytes(w.b)

    def _answer(self, key, version, r):
        def text():
            n = r.int('h')
            return bytes(r.take(n)) if n >= 0 else b''

        def blob():
            n = r.int('i')
            return bytes(r.take(n)) if n >= 0 else b''

        def put(b, fmt='h'):
            return struct.pack('>' + fmt, len(b)) + b
        group = text()
        g = self.groups.setdefault(group, {'generation': 0, 'committed': {}, 'assignment': b''})
        if key == FIND_COORDINATOR:
            head = struct.pack('>ih', 0, 0) + struct.pack('>h', -1) if version >= 1 else struct.pack('>h', 0)
            return head + struct.pack('>i', self.node_id) + put(b'127.0.0.1') + struct.pack('>i', self.port)
        if key == JOIN_GROUP:
            r.take(8 if version >= 1 else 4)
            member = text() or b'member-of-' + group
            text()
            protocols = [(text(), blob()) for _ in range(r.int('i'))]
            g['generation'] += 1
            name, meta = protocols[0]
            return struct.pack('>hi', 0, g['generation']) + put(name) + put(member) + put(member) + struct.pack('>i', 1) + put(member) + put(meta, 'i')
        if key == SYNC_GROUP:
            r.take(4)
            text()
            for _ in range(r.int('i')):
                text()
                g['assignment'] = blob()
            return struct.pack('>h', 0) + put(g['assignment'], 'i')
        if key in (HEARTBEAT, LEAVE_GROUP):
            return struct.pack('>h', 0)
        if key == OFFSET_COMMIT:
            r.take(4)
            text()
            r.take(8)
        out = []
        for _ in range(r.int('i')):
            topic, parts = text(), b''
            n = r.int('i')
            for _ in range(n):
                p = r.int('i')
                if key == OFFSET_COMMIT:
                    g['committed'][topic, p] = r.int('q')
                    text()
                    parts += struct.pack('>ih', p, 0)
                else:
                    parts += struct.pack('>iq', p, g['committed'].get((topic, p), -1)) + put(b'') + struct.pack('>h', 0)
            out.append(put(topic) + struct.pack('>i', n) + parts)
        return struct.pack('>i', len(out)) + b''.join(out)
