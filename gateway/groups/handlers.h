/* The Kafka APIs of groups, as dispatch.c's table names them. Each parks its request and posts it
 * to the groups thread. Worker thread. */
#pragma once

#include "gateway/request.h"

gw_handler handle_join_group, handle_sync_group, handle_heartbeat, handle_leave_group;
gw_handler handle_offset_commit, handle_offset_fetch, handle_offset_delete;
gw_handler handle_describe_groups, handle_list_groups, handle_delete_groups;
gw_handler handle_consumer_group_heartbeat, handle_consumer_group_describe;
