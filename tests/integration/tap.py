"""A proxy between real clients and the server that knows what it carries: which client fetched from where, how often. The
server must advertise the tap's address.

It runs in a thread of its own; what tests read is copied under the GIL."""
import asyncio
import struct
import threading
import time
from collections import namedtuple

from kafka_raw import APIS, FETCH, Reader, get_struct

Fetch = namedtuple('Fetch', 'when client version offsets incremental')    # offsets: {partition: offset} as the server knows them


class Tap:
    def __init__(self):
        self.target = None
        self.fetches, self.requests = [], []
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
        known = {}

        async def frame(r):
            head = await r.readexactly(4)
            return await r.readexactly(struct.unpack('>i', head)[0])

        def send(w, f):
            w.write(struct.pack('>i', len(f)) + f)

        async def upward():
            while True:
                f = await frame(cr)
                key, version = struct.unpack('>hh', f[:4])
                r = Reader(f, 8)
                n = r.int('h')
                client = bytes(r.take(n)).decode() if n > 0 else ''
                self.requests.append((time.monotonic(), client, key, version))
                if key == FETCH:
                    self._note_fetch(client, version, r, known)
                send(bw, f)
                await bw.drain()

        async def downward():
            while True:
                f = await frame(br)
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
