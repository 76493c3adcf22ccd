"""Find which calls hold up the thread they are made on, and what an async program says instead."""

BLOCKING = """
# names | what it waits for | the async twin: a name where there is one, else words | parameters that turn waiting off
time.sleep | sleep | asyncio.sleep

subprocess.{run,call,check_call,check_output,getoutput,getstatusoutput} | subprocess | asyncio.create_subprocess_exec
subprocess.Popen.{wait,communicate} | subprocess | asyncio.subprocess.Process.communicate
os.{system,wait,waitpid} | subprocess | asyncio.create_subprocess_shell

urllib.request.{urlopen,urlretrieve} | network | an async client such as httpx.AsyncClient
http.client.HTTPConnection.{request,getresponse,connect} | network | an async client such as httpx.AsyncClient
socket.socket.{recv,recvfrom,recv_into,send,sendall,sendto,accept,connect} | network | asyncio.open_connection
socket.create_connection | network | asyncio.open_connection
socket.{getaddrinfo,gethostbyname,gethostbyaddr,getnameinfo} | network |
    asyncio.AbstractEventLoop.getaddrinfo
ssl.{get_server_certificate} | network | asyncio.open_connection
select.select | network | asyncio.open_connection
smtplib.SMTP.{connect,login,sendmail,send_message,starttls,quit} | network | aiosmtplib.SMTP
ftplib.FTP.{connect,login,retrbinary,storbinary,retrlines,storlines,nlst} | network | an async client
imaplib.IMAP4.{login,select,search,fetch,store,logout} | network | an async client
poplib.POP3.{user,pass_,list,retr,quit} | network | an async client
xmlrpc.client.ServerProxy | network | an async client
socketserver.BaseServer.serve_forever | network | asyncio.start_server
http.server.HTTPServer.serve_forever | network | an async server

threading.Lock.acquire threading.RLock.acquire threading.Semaphore.acquire | lock | asyncio.Lock.acquire | blocking
threading.Condition.{wait,wait_for} | lock | asyncio.Condition.wait
threading.Event.wait | lock | asyncio.Event.wait
threading.Barrier.wait | lock | asyncio.Barrier.wait
threading.Thread.join | lock | asyncio.to_thread
multiprocessing.Process.join | lock | asyncio.to_thread
multiprocessing.pool.Pool.{map,apply,starmap,join} | lock | asyncio.AbstractEventLoop.run_in_executor
multiprocessing.pool.AsyncResult.{get,wait} | future | asyncio.AbstractEventLoop.run_in_executor

queue.Queue.{get,put} | queue | asyncio.Queue.get | block
queue.Queue.join | queue | asyncio.Queue.join
queue.SimpleQueue.get | queue | asyncio.Queue.get | block
multiprocessing.queues.Queue.{get,put} | queue | asyncio.Queue.get | block

concurrent.futures.Future.{result,exception} | future | asyncio.wrap_future
concurrent.futures.{wait,as_completed} | future | asyncio.wait
concurrent.futures.Executor.map | future | asyncio.AbstractEventLoop.run_in_executor

sqlite3.connect | database | aiosqlite.connect
sqlite3.Connection.{execute,executemany,executescript,commit} | database | aiosqlite.Connection.execute
sqlite3.Cursor.{execute,executemany,executescript,fetchall} | database | aiosqlite.Cursor.execute

requests.{get,post,put,patch,delete,head,options,request} | network | httpx.AsyncClient or aiohttp.ClientSession
requests.Session.{get,post,put,patch,delete,head,options,request,send} | network | httpx.AsyncClient or
    aiohttp.ClientSession
httpx.{get,post,put,patch,delete,head,options,request,stream} | network | httpx.AsyncClient.request
httpx.Client.{get,post,put,patch,delete,head,options,request,send,stream} | network | httpx.AsyncClient.request
urllib3.PoolManager.{request,urlopen} urllib3.request | network | httpx.AsyncClient or aiohttp.ClientSession
websocket.create_connection websocket.WebSocket.{recv,send,connect} | network | websockets.connect
websockets.sync.client.connect | network | websockets.connect
paramiko.SSHClient.{connect,exec_command} | network | asyncssh.connect
pika.BlockingConnection | network | aio_pika.connect_robust
kafka.KafkaProducer.flush kafka.KafkaConsumer.poll | network | aiokafka
paho.mqtt.client.Client.{connect,loop_forever} | network | aiomqtt.Client
boto3.{client,resource} | network | aioboto3.Session.client
boto3.session.Session.{client,resource} | network | aioboto3.Session.client
botocore.client.BaseClient._make_api_call | network | aiobotocore
psycopg2.connect | database | psycopg.AsyncConnection.connect
psycopg.connect psycopg.Connection.{connect,execute,commit,rollback} | database | psycopg.AsyncConnection.connect
psycopg.Cursor.{execute,executemany,fetchone,fetchall,fetchmany} | database | psycopg.AsyncCursor.execute
pymysql.connect pymysql.connections.Connection.{query,commit} | database | aiomysql.connect
pymysql.cursors.Cursor.{execute,executemany} | database | aiomysql
mysql.connector.connect | database | mysql.connector.aio.connect
pymongo.collection.Collection.{find_one,insert_one,insert_many,update_one,update_many,delete_one,delete_many,
    count_documents,replace_one,bulk_write,distinct,find_one_and_update} | database | pymongo.AsyncMongoClient
redis.Redis.{execute_command} | database | redis.asyncio.Redis
redis.Redis.{get,set,delete,hget,hset,hgetall,lpush,rpush,lpop,rpop,blpop,brpop,publish,expire,exists,incr,sadd,
    smembers,keys,mget,mset,ping} | database | redis.asyncio.Redis
sqlalchemy.orm.Session.{execute,scalar,scalars,commit,flush,rollback,refresh,get} | database |
    sqlalchemy.ext.asyncio.AsyncSession
sqlalchemy.Connection.{execute,scalar,scalars,commit} | database | sqlalchemy.ext.asyncio.AsyncConnection
sqlalchemy.Engine.{connect,begin} | database | sqlalchemy.ext.asyncio.create_async_engine
elasticsearch.Elasticsearch.{search,index,bulk,get,delete} | network | elasticsearch.AsyncElasticsearch
openai.resources.chat.completions.Completions.create | network | openai.AsyncOpenAI
openai.resources.embeddings.Embeddings.create | network | openai.AsyncOpenAI
openai.resources.responses.Responses.create | network | openai.AsyncOpenAI
anthropic.resources.messages.Messages.{create,stream} | network | anthropic.AsyncAnthropic
playwright.sync_api.sync_playwright | network | playwright.async_api.async_playwright
slack_sdk.WebClient.{api_call,chat_postMessage} | network | slack_sdk.web.async_client.AsyncWebClient
asgiref.sync.async_to_sync | future | a direct await
serial.Serial.{read,write,readline} | file | serial_asyncio
git.Repo.clone_from | subprocess | asyncio.create_subprocess_exec
docker.from_env docker.DockerClient | network | aiodocker.Docker
kubernetes.client.CoreV1Api.{list_namespaced_pod,create_namespaced_pod} | network | kubernetes_asyncio
selenium.webdriver.remote.webdriver.WebDriver.{get,execute} | network | playwright.async_api
"""

RUNS_A_LOOP = """
# names | what it does
asyncio.run | runs
asyncio.Runner.run | runs
asyncio.AbstractEventLoop.{run_until_complete,run_forever} | runs
anyio.run | runs
trio.run | runs
uvicorn.run | runs
uvicorn.Server.run | runs
hypercorn.run.run | runs
aiohttp.web.run_app | runs
discord.Client.run | runs
telegram.ext.Application.{run_polling,run_webhook} | runs
nicegui.ui.run | runs
textual.app.App.run | runs
quart.Quart.run | runs
sanic.Sanic.run | runs
mcp.server.mcpserver.MCPServer.run | runs
agents.Runner.run_sync | runs
pydantic_ai.Agent.run_sync | runs
telethon.sync.syncify | runs
pyrogram.Client.run | runs
uvloop.run | runs
# a running loop on another thread: waiting for it from its own loop never ends
asyncio.run_coroutine_threadsafe | crosses
anyio.from_thread.{run,run_sync} | crosses
asgiref.sync.async_to_sync | crosses
"""
