"""What takes a coroutine and sees to it that it runs, and which slots want which color of function."""

SPAWNERS = """
# names | the parameter (position and name) | what it takes | what comes back | who keeps it alive
asyncio.create_task | 0 coro | coroutine | task | caller
asyncio.ensure_future | 0 coro_or_future | coroutine | task | caller
asyncio.AbstractEventLoop.create_task | 0 coro | coroutine | task | caller
asyncio.{gather} | * coros_or_futures | coroutine | future | caller
asyncio.wait | 0 fs | coroutine | awaitable | caller
asyncio.wait_for | 0 fut | coroutine | awaitable | caller
asyncio.shield | 0 arg | coroutine | future | caller
asyncio.as_completed | 0 fs | coroutine | iterator | caller
asyncio.run_coroutine_threadsafe | 0 coro | coroutine | thread_future | loop
asyncio.run | 0 main | coroutine | value | callee
asyncio.Runner.run | 0 coro | coroutine | value | callee
asyncio.AbstractEventLoop.run_until_complete | 0 future | coroutine | value | callee
asyncio.TaskGroup.create_task | 0 coro | coroutine | task | callee
anyio.run | 0 func | function | value | callee
anyio.abc.TaskGroup.start_soon | 0 func | function | task | callee
anyio.abc.TaskGroup.start | 0 func | function | awaitable | callee
anyio.from_thread.run | 0 func | function | value | callee
trio.run | 0 async_fn | function | value | callee
trio.Nursery.start_soon | 0 async_fn | function | nothing | callee
trio.Nursery.start | 0 async_fn | function | awaitable | callee
trio.lowlevel.spawn_system_task | 0 async_fn | function | nothing | callee
trio.from_thread.run | 0 afn | function | value | callee
starlette.background.BackgroundTasks.add_task | 0 func | either | nothing | callee
starlette.background.BackgroundTask | 0 func | either | nothing | callee
fastapi.BackgroundTasks.add_task | 0 func | either | nothing | callee
starlette.concurrency.run_in_threadpool | 0 func | plain | awaitable | caller
quart.Quart.add_background_task | 0 func | either | nothing | callee
sanic.Sanic.add_task | 0 task | any | task | callee
nicegui.background_tasks.{create,create_lazy} | 0 coroutine | coroutine | task | callee
nicegui.ui.timer | 1 callback | either | nothing | callee
textual.app.App.run_worker | 0 work | any | task | callee
textual.dom.DOMNode.run_worker | 0 work | any | task | callee
textual.message_pump.MessagePump.{call_later,call_after_refresh} | 0 callback | either | nothing | callee
textual.message_pump.MessagePump.{set_timer,set_interval} | 1 callback | either | nothing | callee
homeassistant.core.HomeAssistant.async_create_task | 0 target | coroutine | task | callee
homeassistant.core.HomeAssistant.async_create_background_task | 0 target | coroutine | task | callee
homeassistant.core.HomeAssistant.create_task | 0 target | coroutine | nothing | callee
homeassistant.core.HomeAssistant.async_add_job | 0 target | any | task | callee
homeassistant.core.HomeAssistant.{async_add_hass_job,async_run_hass_job} | 0 hassjob | either | task | callee
homeassistant.core.HomeAssistant.add_job | 0 target | any | nothing | callee
homeassistant.core.HomeAssistant.async_add_executor_job | 0 target | plain | future | caller
homeassistant.core.HomeAssistant.async_add_import_executor_job | 0 target | plain | future | caller
homeassistant.config_entries.ConfigEntry.{async_create_task,async_create_background_task} | 1 target | coroutine
    | task | callee
telegram.ext.Application.create_task | 0 coroutine | coroutine | task | callee
telegram.ext.JobQueue.{run_once,run_repeating,run_daily} | 0 callback | function | nothing | callee
distributed.Client.submit | 0 func | either | future | caller
temporalio.workflow.{execute_activity,start_activity} | 0 activity | either | awaitable | caller
temporalio.workflow.wait_condition | 0 fn | plain | awaitable | caller
temporalio.workflow.wait | 0 fs | coroutine | awaitable | caller
aiojobs.Scheduler.spawn | 0 coro | coroutine | awaitable | callee
asgiref.sync.SyncToAsync | 0 func | plain | function | caller
tornado.ioloop.IOLoop.{add_callback,spawn_callback} | 0 callback | either | nothing | callee
tornado.ioloop.IOLoop.run_sync | 0 func | either | value | callee
tornado.gen.multi | 0 children | coroutine | awaitable | caller
twisted.internet.defer.ensureDeferred | 0 coro | coroutine | future | caller
twisted.internet.threads.deferToThread | 0 f | plain | future | caller
greenback.await_ | 0 aw | coroutine | value | callee
uvloop.run | 0 main | coroutine | value | callee
"""

SLOTS = """
# names | parameter (position and name; `*` any position) | the color it wants: plain, async, either
threading.Thread | 1 target | plain
threading.Timer | 1 function | plain
multiprocessing.Process | 1 target | plain
multiprocessing.pool.Pool.{map,imap,imap_unordered,starmap,apply,apply_async,map_async} | 0 func | plain
concurrent.futures.Executor.{submit,map} | 0 fn | plain
concurrent.futures.ThreadPoolExecutor.submit concurrent.futures.ProcessPoolExecutor.submit | 0 fn | plain
concurrent.futures.ThreadPoolExecutor concurrent.futures.ProcessPoolExecutor | initializer | plain
concurrent.futures.Future.add_done_callback | 0 fn | plain
asyncio.to_thread | 0 func | plain
asyncio.AbstractEventLoop.run_in_executor | 1 func | plain
asyncio.AbstractEventLoop.{call_soon,call_soon_threadsafe} | 0 callback | plain
asyncio.AbstractEventLoop.{call_later,call_at} | 1 callback | plain
asyncio.AbstractEventLoop.{add_signal_handler,add_reader,add_writer} | 1 callback | plain
asyncio.AbstractEventLoop.set_exception_handler | 0 handler | plain
asyncio.Future.add_done_callback | 0 fn | plain
asyncio.Task.add_done_callback | 0 fn | plain
asyncio.start_server asyncio.start_unix_server | 0 client_connected_cb | either
signal.signal | 1 handler | plain
atexit.register | 0 func | plain
sys.settrace sys.setprofile | 0 function | plain
weakref.finalize | 1 func | plain
weakref.ref | 1 callback | plain
builtins.map builtins.filter | 0 func | plain
builtins.{sorted,min,max} | key | plain
builtins.list.sort | key | plain
functools.{reduce} | 0 function | plain
functools.cmp_to_key | 0 mycmp | plain
functools.singledispatch | 0 func | either
functools.partial | 0 func | either
itertools.{groupby} | 1 key | plain
itertools.{takewhile,dropwhile,filterfalse,starmap} | 0 predicate | plain
re.sub | 1 repl | plain
contextlib.ExitStack.callback | 0 callback | plain
contextlib.AsyncExitStack.push_async_callback | 0 callback | async
contextlib.AsyncExitStack.callback | 0 callback | plain
unittest.TestCase.addCleanup | 0 function | plain
unittest.IsolatedAsyncioTestCase.addAsyncCleanup | 0 func | async
unittest.mock.Mock | side_effect | plain
dataclasses.field | default_factory | plain
collections.defaultdict | 0 default_factory | plain
sched.scheduler.enter | 2 action | plain
anyio.to_thread.run_sync | 0 func | plain
anyio.to_process.run_sync | 0 func | plain
anyio.from_thread.run_sync | 0 func | plain
trio.to_thread.run_sync | 0 sync_fn | plain
trio.from_thread.run_sync | 0 fn | plain
trio.lowlevel.TrioToken.run_sync_soon | 0 sync_fn | plain
starlette.concurrency.run_in_threadpool | 0 func | plain
fastapi.concurrency.run_in_threadpool | 0 func | plain
starlette.routing.Route | 1 endpoint | either
starlette.routing.WebSocketRoute | 1 endpoint | async
starlette.applications.Starlette | lifespan | async
fastapi.FastAPI | lifespan | async
fastapi.Depends fastapi.Security | 0 dependency | either
fastapi.FastAPI.add_api_route | 1 endpoint | either
fastapi.APIRouter.add_api_route | 1 endpoint | either
aiohttp.web.{get,post,put,patch,delete,head,options,view} | 1 handler | async
aiohttp.web.route | 2 handler | async
aiohttp.web.UrlDispatcher.{add_get,add_post,add_put,add_patch,add_delete,add_head} | 1 handler | async
aiohttp.web.UrlDispatcher.add_route | 2 handler | async
django.urls.{path,re_path} | 1 view | either
django.db.transaction.on_commit | 0 func | plain
asgiref.sync.sync_to_async | 0 func | plain
asgiref.sync.async_to_sync | 0 awaitable | async
websockets.serve | 0 handler | async
websockets.asyncio.server.serve | 0 handler | async
nats.aio.client.Client.subscribe | cb | async
aio_pika.abc.AbstractQueue.consume | 0 callback | either
telegram.ext.{CommandHandler} | 1 callback | async
telegram.ext.{MessageHandler} | 1 callback | async
telegram.ext.CallbackQueryHandler | 0 callback | async
telegram.ext.Application.add_error_handler | 0 callback | async
aiogram.dispatcher.event.telegram.TelegramEventObserver.register | 0 callback | either
telethon.TelegramClient.add_event_handler | 0 callback | either
discord.ext.commands.Bot.add_check | 0 func | either
schedule.Job.do | 0 job_func | plain
apscheduler.schedulers.base.BaseScheduler.add_job | 0 func | either
apscheduler.schedulers.background.BackgroundScheduler.add_job | 0 func | plain
apscheduler.schedulers.blocking.BlockingScheduler.add_job | 0 func | plain
typer.run | 0 function | plain
celery.Celery.task | 0 args | plain
click.Context.call_on_close | 0 f | plain
flask.Flask.add_url_rule | 2 view_func | either
tornado.ioloop.IOLoop.call_later | 1 callback | either
tornado.ioloop.IOLoop.run_in_executor | 1 func | plain
tornado.ioloop.PeriodicCallback | 0 callback | either
tkinter.Misc.after | 1 func | plain
streamlit.button | on_click | plain
pandas.DataFrame.apply | 0 func | plain
pandas.Series.{apply,map} | 0 func | plain
langchain_core.runnables.RunnableLambda | 0 func | either
langchain_core.runnables.RunnableLambda | 1 afunc | async
langchain_core.tools.StructuredTool.from_function | 0 func | plain
langchain_core.tools.StructuredTool.from_function | 1 coroutine | async
langchain_core.tools.Tool | 1 func | plain
langgraph.graph.StateGraph.add_node | 1 action | either
langgraph.graph.StateGraph.add_conditional_edges | 1 path | either
mcp.server.mcpserver.MCPServer.add_tool | 0 fn | either
temporalio.worker.Worker | activities | either
homeassistant.helpers.event.async_track_state_change_event | 2 action | either
homeassistant.helpers.event.async_call_later | 2 action | either
homeassistant.core.EventBus.{async_listen,async_listen_once} | 1 listener | either
homeassistant.core.ServiceRegistry.async_register | 2 service_func | either
homeassistant.helpers.dispatcher.async_dispatcher_connect | 2 target | either
"""
