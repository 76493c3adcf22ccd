"""What decorators of the standard library and of frameworks do to the color of a function, or demand of it."""

DECORATORS = """
# names | effect | words
#   keeps       gives back a function of the same color
#   caches      keeps the first result: of an async function that is a coroutine, which can be awaited only once
#   async_cache keeps awaited results; the function must be async
#   manager     makes a context manager of a sync generator
#   async_manager  makes an async context manager of an async generator
#   wants_plain the result is called and never awaited: an async function would not run
#   wants_async the result is awaited: a sync function fails
#   either      the framework calls it, and awaits what comes back if it has to
#   makes_async gives an async function whatever it gets
#   makes_sync  gives a sync function whatever it gets
functools.wraps functools.update_wrapper | keeps
functools.singledispatch functools.singledispatchmethod functools.partialmethod | keeps
functools.{lru_cache,cache,cached_property} | caches
functools.total_ordering | keeps
abc.abstractmethod typing.{final,overload,no_type_check,override,runtime_checkable} | keeps
typing_extensions.{deprecated,override,final,overload} | keeps
warnings.deprecated | keeps
atexit.register | wants_plain
contextlib.contextmanager | manager
contextlib.asynccontextmanager | async_manager
types.coroutine | makes_async
unittest.mock.patch | keeps
unittest.{skip,skipIf,skipUnless,expectedFailure} | keeps
builtins.{staticmethod,classmethod} | keeps
builtins.property | wants_plain

asgiref.sync.sync_to_async | makes_async
asgiref.sync.async_to_sync | makes_sync
asgiref.sync.{markcoroutinefunction} | makes_async
greenback.{autoawait,with_portal_run} | keeps
async_lru.alru_cache | async_cache
aiocache.{cached,cached_stampede,multi_cached} | async_cache
cachetools.{cached,cachedmethod} | caches
tenacity.retry | keeps
backoff.{on_exception,on_predicate} | keeps
stamina.retry | keeps
retrying.retry | keeps
wrapt.decorator | keeps
decorator.decorator | keeps
deprecated.deprecated | keeps
async_timeout.timeout | keeps
asyncstdlib.{lru_cache,cache,cached_property} | async_cache
anyio.from_thread.{run_sync} | keeps
opentelemetry.trace.Tracer.start_as_current_span | keeps
sentry_sdk.trace | keeps
structlog.contextvars.bound_contextvars | keeps
pydantic.validate_call | keeps
pydantic.{field_validator,model_validator,validator,root_validator,field_serializer,model_serializer,
    computed_field} | wants_plain
attrs.define attrs.frozen | keeps
typeguard.typechecked | keeps
beartype.beartype | keeps

click.{command,group,pass_context,pass_obj,version_option} | wants_plain
click.{option,argument} | keeps
typer.Typer.{command,callback} | wants_plain
celery.Celery.task celery.shared_task | wants_plain
dramatiq.actor | either
huey.Huey.task | wants_plain
rq.decorators.job | either
arq.cron | either
taskiq.AsyncBroker.task | either
procrastinate.App.task | either
invoke.task | wants_plain
schedule.repeat | wants_plain
apscheduler.schedulers.base.BaseScheduler.scheduled_job | either
apscheduler.schedulers.background.BackgroundScheduler.scheduled_job | wants_plain
apscheduler.schedulers.blocking.BlockingScheduler.scheduled_job | wants_plain
prefect.{flow,task} | either
nox.session | wants_plain
temporalio.workflow.run | wants_async
temporalio.workflow.{signal,update,query} | either
temporalio.workflow.{defn,init} | keeps
temporalio.activity.defn | either

fastapi.FastAPI.{get,post,put,patch,delete,head,options,trace,api_route} | either
fastapi.APIRouter.{get,post,put,patch,delete,head,options,trace,api_route} | either
fastapi.FastAPI.{websocket,websocket_route} fastapi.APIRouter.{websocket,websocket_route} | wants_async
fastapi.FastAPI.{middleware} | wants_async
fastapi.FastAPI.{exception_handler,on_event} fastapi.APIRouter.on_event | either
starlette.authentication.requires | keeps
aiohttp.web.RouteTableDef.{get,post,put,patch,delete,head,view,route} | wants_async
aiohttp.web.middleware | wants_async
litestar.{get,post,put,patch,delete,head,route} | either
litestar.{websocket} | wants_async
litestar.{websocket_listener} | either
litestar.events.listener | either
quart.Quart.{route,get,post,put,patch,delete,websocket,before_request,after_request,before_serving,
    after_serving,errorhandler,while_serving} | either
quart.Blueprint.{route,get,post,put,patch,delete,websocket,before_request,after_request,errorhandler} | either
flask.Flask.{route,get,post,put,patch,delete,before_request,after_request,errorhandler} | either
flask.Blueprint.{route,get,post,put,patch,delete,before_request,after_request,errorhandler} | either
flask.Flask.{teardown_request,teardown_appcontext} | either
sanic.Sanic.{get,post,put,patch,delete,head,options,route,websocket,middleware,on_request,on_response,listener,
    exception,before_server_start,after_server_start,before_server_stop,after_server_stop,main_process_start,
    signal} | either
sanic.Blueprint.{get,post,put,patch,delete,head,options,route,websocket,middleware,listener,exception} | either
django.views.decorators.http.{require_http_methods,require_GET,require_POST,require_safe} | keeps
django.views.decorators.csrf.{csrf_exempt,csrf_protect} | keeps
django.contrib.auth.decorators.{login_required,permission_required,user_passes_test} | keeps
django.views.decorators.cache.{cache_page,never_cache,cache_control} | keeps
django.db.transaction.atomic | wants_plain
django.dispatch.receiver | either
django.utils.decorators.method_decorator | keeps
django.utils.functional.cached_property | caches
channels.db.database_sync_to_async | makes_async
bottle.{route,get,post} | wants_plain
falcon.before falcon.after | either
nicegui.ui.{page,refreshable} | either
nicegui.app.app.App.{on_startup,on_shutdown} | either
gradio.render | wants_plain
streamlit.{cache_data,cache_resource,fragment} | wants_plain
chainlit.{on_message,on_chat_start,on_chat_end,on_chat_resume,on_stop,step,action_callback,
    password_auth_callback} | either
textual.on textual.work | either

pytest.fixture | either
pytest_asyncio.fixture | either
pytest.mark | keeps
hypothesis.given hypothesis.settings | keeps
freezegun.freeze_time | keeps
responses.activate | wants_plain

discord.Client.event | wants_async
discord.ext.commands.{command,group,hybrid_command,hybrid_group} | wants_async
discord.ext.commands.Bot.{command,group,hybrid_command,hybrid_group,listen,event} | wants_async
discord.ext.commands.Cog.listener | wants_async
discord.ext.commands.{check} | keeps
discord.ext.commands.{cooldown,has_permissions,has_role,is_owner,guild_only,bot_has_permissions,max_concurrency}
    | keeps
discord.ext.tasks.loop | wants_async
discord.app_commands.{command,context_menu} | wants_async
discord.app_commands.CommandTree.{command,context_menu,error} | wants_async
discord.app_commands.{describe,rename,choices,guild_only,autocomplete,default_permissions} | keeps
discord.ui.{button,select} | wants_async
disnake.ext.commands.{command,slash_command,user_command,message_command} | wants_async
interactions.{slash_command,listen,component_callback} | wants_async
hikari.GatewayBot.listen | wants_async
aiogram.dispatcher.event.telegram.TelegramEventObserver.__call__ | either
telethon.TelegramClient.on | either
pyrogram.Client.{on_message,on_callback_query,on_inline_query,on_chat_member_updated} | either
slack_bolt.App.{event,command,action,shortcut,view,message,options,error,middleware} | wants_plain
slack_bolt.async_app.AsyncApp.{event,command,action,shortcut,view,message,options,error,middleware} | wants_async
twitchio.ext.commands.command | wants_async

langchain_core.tools.tool | either
langchain_core.runnables.chain | either
langgraph.func.{task,entrypoint} | either
mcp.server.mcpserver.MCPServer.{tool,resource,prompt} | either
fastmcp.FastMCP.{tool,resource,prompt} | either
pydantic_ai.Agent.{tool,tool_plain,output_validator,system_prompt,instructions} | either
agents.function_tool | either
agents.{input_guardrail,output_guardrail} | either
llama_index.core.workflow.step | either
autogen_core.{message_handler,event,rpc} | wants_async
crewai.flow.flow.{start,listen,router} | either
crewai.tools.tool | either
openai.OpenAI.post | keeps
strawberry.{field,mutation} | either
strawberry.subscription | wants_async
ariadne.ObjectType.field | either
ariadne.SubscriptionType.source | wants_async
sqlalchemy.event.listens_for | wants_plain
sqlalchemy.orm.{validates,reconstructor} | wants_plain
sqlalchemy.ext.hybrid.{hybrid_property,hybrid_method} | wants_plain
tortoise.signals.{pre_save,post_save,pre_delete,post_delete} | wants_async
tortoise.transactions.atomic | wants_async
beanie.{before_event,after_event} | either
homeassistant.core.callback | keeps
homeassistant.util.Throttle | keeps
homeassistant.util.decorator.Registry.register | keeps
homeassistant.components.websocket_api.{async_response} | wants_async
homeassistant.components.websocket_api.{websocket_command,require_admin} | keeps
tornado.gen.coroutine | makes_async
tornado.web.authenticated | keeps
twisted.internet.defer.inlineCallbacks | makes_async
"""
