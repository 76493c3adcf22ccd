"""Find which methods and functions a framework calls by name, and whether it awaits what they give."""

HOOKS = """
# a base class | names of its methods, with * | what the framework does: awaits, either (awaits if it has to), calls
unittest.TestCase | test* setUp tearDown setUpClass tearDownClass | calls
unittest.IsolatedAsyncioTestCase | test* | either
unittest.IsolatedAsyncioTestCase | asyncSetUp asyncTearDown | awaits
unittest.IsolatedAsyncioTestCase | setUp tearDown setUpClass tearDownClass | calls
asyncio.BaseProtocol | connection_made connection_lost pause_writing resume_writing | calls
asyncio.Protocol | data_received eof_received | calls
asyncio.DatagramProtocol | datagram_received error_received | calls
threading.Thread | run | calls
multiprocessing.Process | run | calls
json.JSONEncoder | default | calls
logging.Handler | emit handle | calls
logging.Filter | filter | calls
http.server.BaseHTTPRequestHandler | do_* | calls
socketserver.BaseRequestHandler | handle setup finish | calls
html.parser.HTMLParser | handle_starttag handle_endtag handle_data handle_startendtag handle_comment | calls
ast.NodeVisitor | visit_* generic_visit | calls
cmd.Cmd | do_* | calls
argparse.Action | __call__ | calls

starlette.endpoints.HTTPEndpoint | get post put patch delete head options | either
starlette.endpoints.WebSocketEndpoint | on_connect on_receive on_disconnect | awaits
starlette.middleware.base.BaseHTTPMiddleware | dispatch | awaits
starlette.authentication.AuthenticationBackend | authenticate | awaits
starlette.types.ASGIApp | __call__ | awaits
fastapi.security.base.SecurityBase | __call__ | either
aiohttp.web.View | get post put patch delete head options | awaits
aiohttp.abc.AbstractAccessLogger | log | calls
django.views.View | get post put patch delete head options trace http_method_not_allowed | either
django.test.TestCase | test* | either
django.test.SimpleTestCase | test* | either
django.test.TestCase | setUp tearDown setUpClass tearDownClass setUpTestData | calls
django.core.management.BaseCommand | handle | calls
django.db.models.Model | save delete clean full_clean | calls
django.forms.Form | clean clean_* | calls
channels.generic.websocket.AsyncWebsocketConsumer | connect disconnect receive websocket_* | awaits
channels.generic.websocket.AsyncJsonWebsocketConsumer | connect disconnect receive_json websocket_* | awaits
channels.generic.websocket.WebsocketConsumer | connect disconnect receive | calls
tornado.web.RequestHandler | get post put patch delete head options prepare | either
tornado.web.RequestHandler | on_finish initialize set_default_headers | calls
tornado.websocket.WebSocketHandler | open on_message | either
tornado.websocket.WebSocketHandler | on_close on_pong | calls
sanic.views.HTTPMethodView | get post put patch delete head options | either
quart.views.MethodView | get post put patch delete head options | either
flask.views.MethodView | get post put patch delete head options | either
litestar.Controller | before_request after_request after_response | either
falcon.asgi.App | add_route | calls

discord.Client | on_* setup_hook | awaits
discord.ext.commands.Cog | cog_before_invoke cog_after_invoke cog_command_error cog_app_command_error | awaits
discord.ext.commands.Cog | cog_load cog_unload cog_check bot_check bot_check_once interaction_check | either
discord.ui.View | on_timeout on_error interaction_check | awaits
discord.ui.Modal | on_submit on_error on_timeout interaction_check | awaits
discord.ui.Item | callback | awaits
discord.app_commands.CommandTree | on_error interaction_check | awaits
discord.app_commands.Transformer | transform autocomplete | awaits
discord.ext.commands.Converter | convert | awaits
discord.ext.commands.HelpCommand | send_* command_callback on_help_command_error prepare_help_command | awaits
discord.VoiceProtocol | on_voice_state_update on_voice_server_update connect disconnect | awaits
disnake.ext.commands.Cog | cog_before_invoke cog_after_invoke | awaits
disnake.ext.commands.Cog | cog_load | either
aiogram.BaseMiddleware | __call__ | awaits
aiogram.filters.Filter | __call__ | awaits
aiogram.filters.BaseFilter | __call__ | awaits
aiogram.fsm.storage.base.BaseStorage | set_state get_state set_data get_data close | awaits
telegram.ext.BasePersistence | get_bot_data get_chat_data get_user_data update_bot_data update_chat_data
    update_user_data flush | awaits
telegram.ext.BaseHandler | handle_update | awaits
telegram.ext.BaseHandler | check_update | calls
twitchio.Client | event_* | awaits

textual.app.App | on_* action_* key_* watch_* | either
textual.app.App | compose validate_* compute_* | calls
textual.widget.Widget | on_* action_* key_* watch_* | either
textual.widget.Widget | compose render validate_* compute_* | calls
textual.screen.Screen | on_* action_* key_* watch_* | either

langchain_core.tools.BaseTool | _arun | awaits
langchain_core.tools.BaseTool | _run | calls
langchain_core.language_models.LLM | _acall | awaits
langchain_core.language_models.LLM | _call | calls
langchain_core.language_models.BaseChatModel | _agenerate _astream | awaits
langchain_core.language_models.BaseChatModel | _generate _stream | calls
langchain_core.retrievers.BaseRetriever | _aget_relevant_documents | awaits
langchain_core.retrievers.BaseRetriever | _get_relevant_documents | calls
langchain_core.embeddings.Embeddings | aembed_documents aembed_query | awaits
langchain_core.embeddings.Embeddings | embed_documents embed_query | calls
langchain_core.callbacks.AsyncCallbackHandler | on_* | awaits
langchain_core.callbacks.BaseCallbackHandler | on_* | either
langchain_core.runnables.Runnable | ainvoke abatch astream atransform | awaits
langchain_core.runnables.Runnable | invoke batch stream transform | calls
langchain_core.chat_history.BaseChatMessageHistory | aget_messages aadd_messages aclear | awaits
langgraph.checkpoint.base.BaseCheckpointSaver | aget_tuple aput aput_writes alist | awaits
langgraph.checkpoint.base.BaseCheckpointSaver | get_tuple put put_writes list | calls
llama_index.core.llms.CustomLLM | acomplete achat astream_complete astream_chat | awaits
llama_index.core.retrievers.BaseRetriever | _aretrieve | awaits
llama_index.core.retrievers.BaseRetriever | _retrieve | calls
crewai.tools.BaseTool | _run | either
autogen_core.RoutedAgent | on_message_impl on_unhandled_message | awaits
autogen_agentchat.agents.BaseChatAgent | on_messages on_reset on_messages_stream | awaits
agents.RunHooks | on_* | awaits
agents.AgentHooks | on_* | awaits
agents.Model | get_response | awaits
mcp.server.auth.provider.OAuthAuthorizationServerProvider | * | awaits
pydantic_ai.models.Model | request | awaits
fastmcp.server.middleware.Middleware | on_* __call__ | awaits

temporalio.worker.ActivityInboundInterceptor | execute_activity | awaits
temporalio.worker.WorkflowInboundInterceptor | execute_workflow handle_signal handle_update_handler | awaits
celery.Task | run on_success on_failure on_retry | calls
dramatiq.Middleware | before_* after_* | calls
taskiq.TaskiqMiddleware | startup shutdown pre_* post_* on_* | either
taskiq.AsyncBroker | kick listen startup shutdown | awaits
distributed.WorkerPlugin | setup teardown transition | either
distributed.SchedulerPlugin | start close restart | either
tortoise.models.Model | save delete | awaits
pymongo.monitoring.CommandListener | started succeeded failed | calls
graphql.Middleware | resolve | either
strawberry.extensions.SchemaExtension | on_operation on_validate on_parse on_execute resolve get_results | either
strawberry.permission.BasePermission | has_permission | either
grpc.aio.ServerInterceptor | intercept_service | awaits
grpc.aio.UnaryUnaryClientInterceptor | intercept_unary_unary | awaits
asyncssh.SSHServer | validate_password begin_auth | either
asyncssh.SSHServer | connection_made connection_lost | calls
httpx.AsyncBaseTransport | handle_async_request aclose | awaits
httpx.BaseTransport | handle_request close | calls
httpx.Auth | async_auth_flow sync_auth_flow auth_flow | calls
aiocache.plugins.BasePlugin | pre_* post_* | awaits
zeroconf.ServiceListener | add_service remove_service update_service | calls
watchdog.events.FileSystemEventHandler | on_* dispatch | calls
scrapy.Spider | parse start start_requests | either
pytest_asyncio.plugin.PytestAsyncioFunction | runtest | calls
jupyter_client.KernelManager | start_kernel shutdown_kernel | either
ipykernel.kernelbase.Kernel | do_* | either

homeassistant.config_entries.ConfigFlow | async_step_* async_oauth_create_entry | awaits
homeassistant.config_entries.OptionsFlow | async_step_* | awaits
homeassistant.config_entries.ConfigSubentryFlow | async_step_* | awaits
homeassistant.data_entry_flow.FlowHandler | async_step_* | awaits
homeassistant.helpers.entity.Entity | async_added_to_hass async_will_remove_from_hass async_update
    async_removed_from_registry async_internal_added_to_hass | awaits
homeassistant.helpers.entity.Entity | update | calls
homeassistant.helpers.entity.ToggleEntity | async_turn_on async_turn_off async_toggle | awaits
homeassistant.helpers.update_coordinator.DataUpdateCoordinator | _async_update_data _async_setup async_shutdown
    | awaits
homeassistant.helpers.intent.IntentHandler | async_handle | awaits
homeassistant.components.http.HomeAssistantView | get post put delete | either
"""

MODULE_HOOKS = """
# a package, and files (with *) that follow its rules | names of module functions | awaits, either, calls
homeassistant | custom_components/** homeassistant/components/** | async_setup async_setup_entry
    async_setup_platform async_unload_entry async_remove_entry async_migrate_entry async_reload_entry
    async_remove_config_entry_device async_get_config_entry_diagnostics async_get_device_diagnostics
    async_get_triggers async_get_conditions async_get_actions async_attach_trigger async_call_action_from_config
    async_validate_trigger_config async_validate_action_config async_get_trigger_capabilities
    async_get_condition_capabilities async_get_action_capabilities async_get_media_source
    async_get_engine async_reproduce_states async_browse_media async_setup_intents async_create_fix_flow
    async_get_auth_implementation async_get_authorization_server async_get_description_placeholders
    async_process_integration_platform | awaits
homeassistant | custom_components/** homeassistant/components/** | setup setup_platform get_scanner get_engine
    get_service | calls
discord | ** | setup teardown | awaits
alembic | env.py versions/** | upgrade downgrade run_migrations_offline run_migrations_online | calls
gunicorn | gunicorn.conf.py | on_starting when_ready pre_fork post_fork worker_exit | calls
"""
