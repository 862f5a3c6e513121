"""The group calls of the protocol, for kafka_raw's client; and a tap between real group members and the server, which
notes what was asked and answered: who owned which partition in which generation, which commits were answered, what was
read back. Written from the protocol's definition."""
import asyncio
import struct
import threading
import time
from collections import namedtuple

from kafka_raw import A, AN, APIS, FIND_COORDINATOR, JOIN_GROUP, OFFSET_FETCH, Api, Conn, F, Reader, decode_response, get_struct

OFFSET_COMMIT, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 8, 12, 13, 14
DESCRIBE_GROUPS, LIST_GROUPS, DELETE_GROUPS, OFFSET_DELETE = 15, 16, 42, 47

APIS.update({
    JOIN_GROUP: Api(JOIN_GROUP, 0, 9, 6,
        [F('group_id', 'string'), F('session_timeout_ms', 'int32'), F('rebalance_timeout_ms', 'int32', 1, default=-1),
         F('member_id', 'string'), F('group_instance_id', 'string?', 5), F('protocol_type', 'string'),
         F('protocols', A([F('name', 'string'), F('metadata', 'bytes')])), F('reason', 'string?', 8)],
        [F('throttle_time_ms', 'int32', 2), F('error_code', 'int16'), F('generation_id', 'int32'),
         F('protocol_type', 'string?', 7), F('protocol_name', 'string?'), F('leader', 'string'),
         F('skip_assignment', 'bool', 9), F('member_id', 'string'),
         F('members', A([F('member_id', 'string'), F('group_instance_id', 'string?', 5), F('metadata', 'bytes')]))]),
    SYNC_GROUP: Api(SYNC_GROUP, 0, 5, 4,
        [F('group_id', 'string'), F('generation_id', 'int32'), F('member_id', 'string'), F('group_instance_id', 'string?', 3),
         F('protocol_type', 'string?', 5), F('protocol_name', 'string?', 5),
         F('assignments', A([F('member_id', 'string'), F('assignment', 'bytes')]))],
        [F('throttle_time_ms', 'int32', 1), F('error_code', 'int16'), F('protocol_type', 'string?', 5),
         F('protocol_name', 'string?', 5), F('assignment', 'bytes')]),
    HEARTBEAT: Api(HEARTBEAT, 0, 4, 4,
        [F('group_id', 'string'), F('generation_id', 'int32'), F('member_id', 'string'), F('group_instance_id', 'string?', 3)],
        [F('throttle_time_ms', 'int32', 1), F('error_code', 'int16')]),
    LEAVE_GROUP: Api(LEAVE_GROUP, 0, 5, 4,
        [F('group_id', 'string'), F('member_id', 'string', 0, 2),
         F('members', A([F('member_id', 'string'), F('group_instance_id', 'string?'), F('reason', 'string?', 5)]), 3)],
        [F('throttle_time_ms', 'int32', 1), F('error_code', 'int16'),
         F('members', A([F('member_id', 'string'), F('group_instance_id', 'string?'), F('error_code', 'int16')]), 3)]),
    OFFSET_COMMIT: Api(OFFSET_COMMIT, 2, 10, 8,
        [F('group_id', 'string'), F('generation_id_or_member_epoch', 'int32', 1, default=-1), F('member_id', 'string', 1),
         F('group_instance_id', 'string?', 7), F('retention_time_ms', 'int64', 2, 4, default=-1),
         F('topics', A([F('name', 'string', 0, 9), F('topic_id', 'uuid', 10),
                        F('partitions', A([F('partition_index', 'int32'), F('committed_offset', 'int64'),
                                           F('committed_leader_epoch', 'int32', 6, default=-1),
                                           F('committed_metadata', 'string?')]))]))],
        [F('throttle_time_ms', 'int32', 3),
         F('topics', A([F('name', 'string', 0, 9), F('topic_id', 'uuid', 10),
                        F('partitions', A([F('partition_index', 'int32'), F('error_code', 'int16')]))]))]),
    OFFSET_FETCH: Api(OFFSET_FETCH, 1, 10, 6,
        [F('group_id', 'string', 0, 7), F('topics', AN([F('name', 'string'), F('partition_indexes', A('int32'))]), 0, 7),
         F('groups', A([F('group_id', 'string'), F('member_id', 'string?', 9), F('member_epoch', 'int32', 9, default=-1),
                        F('topics', AN([F('name', 'string', 0, 9), F('topic_id', 'uuid', 10),
                                        F('partition_indexes', A('int32'))]))]), 8),
         F('require_stable', 'bool', 7)],
        [F('throttle_time_ms', 'int32', 3),
         F('topics', A([F('name', 'string'),
                        F('partitions', A([F('partition_index', 'int32'), F('committed_offset', 'int64'),
                                           F('committed_leader_epoch', 'int32', 5), F('metadata', 'string?'),
                                           F('error_code', 'int16')]))]), 0, 7),
         F('error_code', 'int16', 2, 7),
         F('groups', A([F('group_id', 'string'),
                        F('topics', A([F('name', 'string', 0, 9), F('topic_id', 'uuid', 10),
                                       F('partitions', A([F('partition_index', 'int32'), F('committed_offset', 'int64'),
                                                          F('committed_leader_epoch', 'int32'), F('metadata', 'string?'),
                                                          F('error_code', 'int16')]))])),
                        F('error_code', 'int16')]), 8)]),
    DESCRIBE_GROUPS: Api(DESCRIBE_GROUPS, 0, 6, 5,
        [F('groups', A('string')), F('include_authorized_operations', 'bool', 3)],
        [F('throttle_time_ms', 'int32', 1),
         F('groups', A([F('error_code', 'int16'), F('error_message', 'string?', 6), F('group_id', 'string'),
                        F('group_state', 'string'), F('protocol_type', 'string'), F('protocol_data', 'string'),
                        F('members', A([F('member_id', 'string'), F('group_instance_id', 'string?', 4), F('client_id', 'string'),
                                        F('client_host', 'string'), F('member_metadata', 'bytes'), F('member_assignment', 'bytes')])),
                        F('authorized_operations', 'int32', 3)]))]),
    LIST_GROUPS: Api(LIST_GROUPS, 0, 5, 3,
        [F('states_filter', A('string'), 4), F('types_filter', A('string'), 5)],
        [F('throttle_time_ms', 'int32', 1), F('error_code', 'int16'),
         F('groups', A([F('group_id', 'string'), F('protocol_type', 'string'), F('group_state', 'string', 4),
                        F('group_type', 'string', 5)]))]),
    DELETE_GROUPS: Api(DELETE_GROUPS, 0, 2, 2,
        [F('groups_names', A('string'))],
        [F('throttle_time_ms', 'int32'), F('results', A([F('group_id', 'string'), F('error_code', 'int16')]))]),
    OFFSET_DELETE: Api(OFFSET_DELETE, 0, 0, 99,
        [F('group_id', 'string'), F('topics', A([F('name', 'string'), F('partitions', A([F('partition_index', 'int32')]))]))],
        [F('error_code', 'int16'), F('throttle_time_ms', 'int32'),
         F('topics', A([F('name', 'string'), F('partitions', A([F('partition_index', 'int32'), F('error_code', 'int16')]))]))]),
})


def subscription(*topics):
    """ConsumerProtocolSubscription, version 0."""
    return struct.pack('>hi', 0, len(topics)) + b''.join(struct.pack('>h', len(t)) + t.encode() for t in topics) + struct.pack('>i', -1)


def assigned(b):
    """ConsumerProtocolAssignment -> [(topic, partition)]; empty bytes mean nothing."""
    if not b:
        return []
    r, out = Reader(b), []
    r.int('h')
    for _ in range(r.int('i')):
        topic = bytes(r.take(r.int('h'))).decode()
        out += [(topic, r.int('i')) for _ in range(r.int('i'))]
    return out


class Raw:
    """One connection and the usual group calls for one topic."""
    def __init__(self, port, group, client_id='raw'):
        self.c, self.group = Conn(port, timeout=30, client_id=client_id), group

    def join_start(self, topic, member='', version=3, session=10000, rebalance=5000, instance=None, protocol='range', kind='consumer'):
        body = {'group_id': self.group, 'session_timeout_ms': session, 'member_id': member, 'protocol_type': kind,
                'protocols': [{'name': protocol, 'metadata': subscription(topic)}]}
        if version >= 1:
            body['rebalance_timeout_ms'] = rebalance
        if version >= 5:
            body['group_instance_id'] = instance
        self.version = version
        self.at = self.c.start(JOIN_GROUP, version, **body)

    def join_finish(self):
        return self.c.finish(JOIN_GROUP, self.version, self.at)

    def join(self, topic, **kw):
        self.join_start(topic, **kw)
        return self.join_finish()

    def sync(self, generation, member, assignments=(), version=3):
        return self.c.call(SYNC_GROUP, version, group_id=self.group, generation_id=generation, member_id=member,
                           assignments=[{'member_id': m, 'assignment': a} for m, a in assignments])

    def heartbeat(self, generation, member, version=3):
        return self.c.call(HEARTBEAT, version, group_id=self.group, generation_id=generation, member_id=member)['error_code']

    def leave(self, member):
        return self.c.call(LEAVE_GROUP, 1, group_id=self.group, member_id=member)['error_code']

    def commit(self, topic, partition, offset, generation=-1, member='', epoch=-1, version=7, metadata=''):
        part = {'partition_index': partition, 'committed_offset': offset, 'committed_metadata': metadata}
        if version >= 6:
            part['committed_leader_epoch'] = epoch
        r = self.c.call(OFFSET_COMMIT, version, group_id=self.group, generation_id_or_member_epoch=generation, member_id=member,
                        topics=[{'name': topic, 'partitions': [part]}])
        return r['topics'][0]['partitions'][0]['error_code']

    def committed(self, topic, partition, version=7):
        r = self.c.call(OFFSET_FETCH, version, group_id=self.group, topics=[{'name': topic, 'partition_indexes': [partition]}])
        assert r.get('error_code', 0) == 0, r
        return r['topics'][0]['partitions'][0]

    def close(self):
        self.c.close()


# --- the tap ----------------------------------------------------------------------------------------------------------

Commit = namedtuple('Commit', 'begin end client topic partition offset ok')    # end None: never answered
Read = namedtuple('Read', 'begin end topic partition offset')
Owned = namedtuple('Owned', 'when group generation member client partitions')
NOTED = {JOIN_GROUP, SYNC_GROUP, OFFSET_COMMIT, OFFSET_FETCH, HEARTBEAT, LEAVE_GROUP}


class GroupTap:
    """The server must advertise the tap's address. `target` may change or die; clients see closed connections then."""
    def __init__(self):
        self.target, self.ids = None, {}    # ids: topic id -> name, for the newest versions
        self.commits, self.reads, self.owned, self.generations, self.errors = [], [], [], [], {}
        self.loop = asyncio.new_event_loop()
        self.up = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.up.wait(10)

    def know(self, topic):
        with Conn(self.target) as c:
            self.ids[c.metadata(topic, 12)['topic_id']] = topic

    @property
    def address(self):
        return '127.0.0.1:%d' % self.port

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

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
        pending = {}

        async def pump(r, w, note):
            while True:
                head = await r.readexactly(4)
                frame = await r.readexactly(struct.unpack('>i', head)[0])
                note(frame)
                w.write(head + frame)
                await w.drain()

        def up(frame):
            key, version, corr = struct.unpack('>hhi', frame[:8])
            if key not in NOTED:
                return
            api, r = APIS[key], Reader(frame, 8)
            n = r.int('h')
            client = bytes(r.take(n)).decode() if n > 0 else ''
            if version >= api.flex:
                for _ in range(r.varint()):
                    r.varint()
                    r.take(r.varint())
            pending[corr] = (time.monotonic(), key, version, client, get_struct(r, api.request, version, version >= api.flex))

        def down(frame):
            asked = pending.pop(struct.unpack('>i', frame[:4])[0], None)
            if asked:
                begin, key, version, client, q = asked
                self._note(begin, time.monotonic(), key, client, q, decode_response(key, version, frame)[1])
        tasks = [asyncio.ensure_future(pump(cr, bw, up)), asyncio.ensure_future(pump(br, cw, down))]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for t in tasks:
            if t.done() and not t.cancelled() and t.exception() and not isinstance(t.exception(), (asyncio.IncompleteReadError, OSError)):
                self.errors.setdefault('tap', []).append(repr(t.exception()))
            t.cancel()
        for begin, key, _, client, q in pending.values():
            if key == OFFSET_COMMIT:
                self._commits(begin, None, client, q, None)
        cw.close()
        bw.close()

    def _name(self, t):
        return t['name'] if 'name' in t else self.ids.get(t['topic_id'], t['topic_id'])

    def _commits(self, begin, end, client, q, a):
        for i, t in enumerate(q['topics']):
            for j, p in enumerate(t['partitions']):
                error = 0 if a is None else a['topics'][i]['partitions'][j]['error_code']
                # an error of the store leaves the outcome open
                if a is None or error in (0, 15):
                    self.commits.append(Commit(begin, end if error == 0 else None, client, self._name(t),
                                               p['partition_index'], p['committed_offset'], a is not None and error == 0))

    def _note(self, begin, end, key, client, q, a):
        if key == JOIN_GROUP and a['error_code'] == 0:
            self.generations.append((end, q['group_id'], a['generation_id']))
        elif key == SYNC_GROUP and a['error_code'] == 0:
            self.owned.append(Owned(end, q['group_id'], q['generation_id'], q['member_id'], client, assigned(a['assignment'])))
        elif key == OFFSET_COMMIT:
            self._commits(begin, end, client, q, a)
        elif key == OFFSET_FETCH:
            groups = a['groups'] if 'groups' in a else [a]
            for g in groups:
                for t in g['topics']:
                    for p in t['partitions']:
                        if p['error_code'] == 0 and g.get('error_code', 0) == 0:
                            self.reads.append(Read(begin, end, self._name(t), p['partition_index'], p['committed_offset']))

    # --- what must hold ---------------------------------------------------------------------------------------------
    def check_ownership(self):
        """No partition is given to two members of one generation; generations of a group only rise."""
        seen = {}
        for o in list(self.owned):
            for tp in o.partitions:
                other = seen.setdefault((o.group, o.generation, tp), o)
                assert other.member == o.member, 'owned by two members of one generation: %s %s' % (other, o)

    def check_commits(self):
        """Each read of a committed offset found one that a register could hold: an answered commit is never lost, and an
        older one never comes back."""
        by = {}
        for c in list(self.commits):
            by.setdefault((c.topic, c.partition), []).append(c)
        for r in list(self.reads):
            mine = by.get((r.topic, r.partition), [])
            over = [c for c in mine if c.ok and c.end < r.begin]
            newest = max((c.begin for c in over), default=None)
            fits = [c.offset for c in mine if c.begin < r.end and (newest is None or c.end is None or c.end >= newest)]
            if newest is None:
                fits.append(-1)
            assert r.offset in fits, 'read %s of %s; it could be %s' % (r.offset, (r.topic, r.partition), fits[-20:])
