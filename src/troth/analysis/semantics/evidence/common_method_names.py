"""The method names that say nothing: objects of the standard library, or of many libraries, have them too.

A project whose only `write_text` is async still calls `Path.write_text`. `STANDARD` holds the public plain methods of
some eighty classes of the standard library that programs commonly hold in variables (`tests/analysis/program` keeps it
complete); `COMMON` are words that libraries use for methods of either color.
"""

__all__ = ["COMMON", "GENERIC", "STANDARD"]

STANDARD = frozenset(
    """
    BOOLEAN_STATES DataError DatabaseError Error IntegrityError InterfaceError InternalError NONSPACECRE
    NotSupportedError OPEN_METH OPTCRE OPTCRE_NV OperationalError Process ProgrammingError SECTCRE VERSION Warning
    abort absolute accept acct acquire add addClassCleanup addCleanup addFilter addHandler addTypeEqualityFunc
    add_alternative add_argument add_argument_group add_attachment add_cookie_header add_done_callback add_header
    add_mutually_exclusive_group add_note add_reader add_related add_section add_signal_handler add_subparsers
    add_unredirected_header add_writer addfile address_exclude address_family adjusted allow_reuse_address
    allow_reuse_port anchor append appendleft apply apply_async args arraysize as_bytes as_integer_ratio as_posix
    as_string as_tuple as_uri assertAlmostEqual assertAlmostEquals assertCountEqual assertDictContainsSubset
    assertDictEqual assertEqual assertEquals assertFalse assertGreater assertGreaterEqual assertIn assertIs
    assertIsInstance assertIsNone assertIsNot assertIsNotNone assertLess assertLessEqual assertListEqual assertLogs
    assertMultiLineEqual assertNoLogs assertNotAlmostEqual assertNotAlmostEquals assertNotEqual assertNotEquals
    assertNotIn assertNotIsInstance assertNotRegex assertNotRegexpMatches assertRaises assertRaisesRegex
    assertRaisesRegexp assertRegex assertRegexpMatches assertSequenceEqual assertSetEqual assertTrue
    assertTupleEqual assertWarns assertWarnsRegex assert_ assert_any_call assert_called assert_called_once
    assert_called_once_with assert_called_with assert_has_calls assert_not_called astimezone attach attach_mock
    attrib auth auth_cram_md5 auth_login auth_plain authenticate authkey auto_open backup begin betavariate bind
    bind_partial bit_count bit_length blobopen block_size broadcast_address buffer bytes bytes_le bz2open
    c_contiguous callHandlers call_args call_args_list call_at call_count call_exception_handler call_later
    call_soon call_soon_threadsafe callback called can_write_eof cancel cancelled cancelling canonical capability
    capitalize casefold cast center cert_store_stats characters_written check check_for_whole_start_tag
    check_hostname chmod choice choices chown cipher cleanup clear clear_cdata_mode clear_content
    clear_expired_cookies clear_session_cookies clock_seq clock_seq_hi_variant clock_seq_low close close_request
    closed combine comment commit communicate compare compare_networks compare_signal compare_total
    compare_total_mag compress compressed compression configure_mock conjugate connect connect_ex connection
    connection_lost connection_made context contiguous convert_arg_line_to_args converters copy copy_abs copy_negate
    copy_sign count countTestCases create createLock create_aggregate create_collation create_function create_future
    create_task create_window_function critical ctime cursor cwd daemon data data_received date day days debug
    debugging debuglevel decode decompress defaultTestResult default_exception_handler default_port defaults
    del_param delete deleteacl denominator dequeue dereference description deserialize detach difference
    difference_update digest digest_size dir discard doClassCleanups doCleanups do_handshake docmd does_esmtp done
    drive dst dup ehlo ehlo_msg ehlo_or_helo_if_needed ehlo_resp elements emit empty enable encode encoding end
    endheaders endpos endswith enqueue_sentinel enter enterClassContext enterContext enter_context enterabs
    eof_received errno error errorlevel errors exception execute executemany executescript exists exit exitcode exp
    expand expandtabs expanduser exploded expn expovariate expunge extend extendleft extract extract_cookies
    extractall extractfile extraction_filter f_contiguous fail failIf failIfAlmostEqual failIfEqual failUnless
    failUnlessAlmostEqual failUnlessEqual failUnlessRaises failureException family fatal feed fetch fetchall
    fetchmany fetchone fields file filename filename2 fileno fileobject filter find findCaller findall finditer
    findtext finish_request flags flush fma fold format format_help format_map format_usage fp from_bytes
    from_callable from_float from_uri fromhex fromisocalendar fromisoformat fromkeys fromordinal fromtimestamp full
    full_match full_url fullmatch gammavariate gauss get getChild getEffectiveLevel getMessage getName get_all
    get_body get_boundary get_ca_certs get_channel_binding get_charset get_charsets get_ciphers get_content
    get_content_charset get_content_disposition get_content_maintype get_content_subtype get_content_type get_coro
    get_debug get_default get_default_type get_exception_handler get_extra_info get_filename get_full_url get_header
    get_inheritable get_key get_loop get_map get_method get_name get_nowait get_param get_params get_payload
    get_protocol get_proxy_response_headers get_request get_stack get_starttag_text get_task_factory get_unixfrom
    get_write_buffer_limits get_write_buffer_size getacl getannotation getblocking getboolean getbuffer getcode
    getconfig getfloat getheader getheaders getinfo getint getlimit getline getmember getmembers getmultiline
    getnames getpeercert getpeername getpos getquota getquotaroot getrandbits getreply getresp getresponse getroot
    getsockname getsockopt getstate gettarinfo gettimeout geturl getvalue getwelcome glob goahead group groupdict
    groupindex groups gzopen handle handleError handle_charref handle_comment handle_data handle_decl handle_endtag
    handle_entityref handle_error handle_pi handle_request handle_startendtag handle_starttag handle_timeout
    hardlink_to hasHandlers has_extn has_header has_option has_proxy has_section header_items helo helo_resp help
    hex hexdigest home host hostmask hostname_checks_common_name hosts hour id ident ignore_zeros imag imap
    imap_unordered in_transaction index info infolist insert int interrupt intersection intersection_update isDaemon
    isEnabledFor isSet is_absolute is_alive is_attachment is_block_device is_canonical is_char_device is_closed
    is_closing is_dir is_fifo is_file is_finite is_global is_infinite is_integer is_junction is_link_local
    is_loopback is_mount is_multicast is_multipart is_nan is_normal is_private is_qnan is_reading is_relative_to
    is_reserved is_running is_safe is_set is_signed is_snan is_socket is_subnormal is_symlink is_unspecified is_zero
    isalnum isalpha isascii isatty isclosed isdecimal isdigit isdisjoint isidentifier islower isnumeric isocalendar
    isoformat isolation_level isoweekday isprintable isspace issubset issuperset istitle isupper items itemsize iter
    iter_attachments iter_parts iterdir iterdump iterfind itertext join joinpath keylog_filename keys kill lastgroup
    lastindex lastrowid lchmod line_buffering link_to list listen ljust ln load_cert_chain load_default_certs
    load_dh_params load_verify_locations log log10 logb logical_and logical_invert logical_or logical_xor login
    login_cram_md5 lognormvariate logout longMessage lower lstat lstrip lsub madvise mail makeRecord
    make_alternative make_cookies make_mixed make_related makedev makedir makeelement makefifo makefile makelink
    makepasv makeport maketrans makeunknown manager map map_async match max maxDiff max_mag max_prefixlen
    maximum_version maxlen maxline maxsize microsecond microseconds min min_mag minimum_version minute mkd mkdir
    mlsd mock_add_spec mock_calls mode modify month most_common move move_to_end mtime myfileobj myrights name
    namelist namespace native_id nbytes ndim newlines next next_minus next_plus next_toward nlst node noop normalize
    normalvariate notify notifyAll notify_all now ntransfercmd num_addresses num_tickets number_class numerator obj
    open options optionxform overlaps owner parameters parent parents paretovariate parse parse_args
    parse_bogus_comment parse_comment parse_declaration parse_endtag parse_html_declaration parse_intermixed_args
    parse_known_args parse_known_intermixed_args parse_marked_section parse_pi parse_starttag partial partition
    parts passiveserver pattern pause_reading pause_writing peek pending pid poll pop pop_all popitem popleft port
    pos post_handshake_auth prefixlen prepare print_help print_log print_stack print_usage printdir process_request
    proto protocol proxyauth push put put_nowait putcmd putheader putline putrequest pwd qsize quantize queue quit
    radix randbytes randint random randrange raw raw_items rcpt re read read1 read_byte read_bytes read_dict
    read_events read_file read_string read_text readable readfp readinto readinto1 readline readlines readlink
    readonly real recent reconfigure recv recv_bytes recv_bytes_into recv_into recvfrom recvfrom_into recvmsg
    recvmsg_into register regs relative_to release remainder_near remove removeFilter removeHandler
    remove_done_callback remove_header remove_option remove_reader remove_section remove_signal_handler
    remove_writer removeprefix removesuffix rename replace replace_header request request_queue_size reset_mock
    resize resolution resolve response response_class result resume_reading resume_writing retrbinary retrlines
    return_annotation return_value reverse reverse_pointer rewind rfind rglob rindex rjust rmd rmdir rollback
    rollover root rotate row_factory rowcount rpartition rset rsplit rstrip run run_forever run_in_executor
    run_until_complete running same_quantum samefile sample sanitize scaleb scanner search second seconds sections
    security_level seed seek seekable select selected_alpn_protocol selected_npn_protocol send send_bytes
    send_message send_signal sendall sendcmd sendeprt sendfile sendmail sendmsg sendmsg_afalg sendport sendto
    sentinel serialize serve_forever server_activate server_bind server_close service_actions session session_reused
    session_stats set setDaemon setFormatter setLevel setName setUp setUpClass set_alpn_protocols set_authorizer
    set_boundary set_cdata_mode set_charset set_ciphers set_content set_cookie set_cookie_if_ok set_debug
    set_debuglevel set_default_executor set_default_type set_default_verify_paths set_defaults set_ecdh_curve
    set_exception set_exception_handler set_inheritable set_name set_npn_protocols set_param set_pasv set_payload
    set_policy set_progress_handler set_protocol set_proxy set_raw set_result set_running_or_notify_cancel
    set_servername_callback set_task_factory set_trace_callback set_tunnel set_type set_unixfrom
    set_write_buffer_limits setacl setannotation setblocking setconfig setdefault setinputsizes setlimit
    setoutputsize setpassword setquota setsockopt setstate settimeout shape shared_ciphers shift shortDescription
    shuffle shutdown shutdown_request side_effect size skipTest sni_callback sock socket socket_type sort span split
    splitlines sqrt sslobject_class sslsocket_class starmap starmap_async start startswith starttls stat status stem
    stop storbinary store storlines strerror strftime strides string strip strptime sub subTest submit subn
    subnet_of subnets suboffsets subscribe subtract suffix suffixes supernet supernet_of swapcase symlink_to
    symmetric_difference symmetric_difference_update tag tail tarinfo taropen task_done tearDown tearDownClass tell
    terminate testzip text text_factory thread time time_hi_version time_low time_mid timeout timestamp timetuple
    timetz title to_bytes to_eng_string to_integral to_integral_exact to_integral_value tobytes today tolist
    toordinal toreadonly total total_changes total_seconds touch transfercmd translate transport triangular truncate
    trust_server_pasv_ipv4_address type tzinfo tzname uid uncancel uniform union universal_newlines unknown_decl
    unlink unregister unselect unsubscribe unwrap update updatepos upper urn utcfromtimestamp utcnow utcoffset
    utctimetuple utime values variant verify verify_client_post_handshake verify_flags verify_mode verify_request
    version voidcmd voidresp vonmisesvariate vrfy wait wait_for walk warn warning weekday weibullvariate welcome
    with_hostmask with_name with_netmask with_prefixlen with_segments with_stem with_suffix with_traceback wrap_bio
    wrap_socket writable write write_byte write_bytes write_c14n write_eof write_text write_through writeheader
    writelines writerow writerows writestr xatom xzopen year zfill
    """.split()  # noqa: SIM905  a list of words
)

COMMON = frozenset(
    """
    abort accept acquire add add_done_callback all any append apply apply_async as_dict authenticate begin bind
    build call cancel check clean cleanup clear clone close commit configure connect consume convert copy count create
    cursor data decode default delete describe destroy disconnect dispatch do download dump dumps emit empty encode
    end enqueue enter error eval evaluate event exception exec execute executemany exists exit extend fetch fetchall
    fetchmany fetchone fileno filter find find_all find_one first flush format forward from_dict generate get
    get_all get_by_id get_or_create getall group handle head healthcheck id import_module index info init initialize
    insert instance invoke is_alive is_closed is_connected is_set items iter join json keys kill last len limit list
    listen load loads lock log login logout lookup main map match merge method model move name new next notify
    notify_all on open options order_by parse patch pause ping poll pop post prepare process publish pull push put
    put_nowait query quit raise_for_status read readline receive recv recv_json refresh register release reload
    remove rename render replace report request reset resolve response result resume retrieve rollback run save
    scalar scalars scan schedule search select send send_json sendall set setup show shutdown
    shutdown_default_executor sign sleep sort spawn split start state status step stop stream submit subscribe
    succeed sync tell terminate test text title to_dict touch trace train transaction transform trigger truncate
    type unlink unlock unregister unsubscribe update upload use validate value values verify wait wait_for watch
    where write writelines
    """.split()  # noqa: SIM905  a list of words
)

GENERIC = STANDARD | COMMON
