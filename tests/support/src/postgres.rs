//! A PostgreSQL server for tests: private, on a socket in a temporary folder, and gone when the test process ends.
//!
//! It needs the programs of PostgreSQL, but no server that runs. As root it runs as the user `nobody`, because PostgreSQL refuses
//! to run as root. Durability is off unless it is asked for: the tests end the server, not the machine.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// Waits for the end of its input, which is that of the test process; then ends the server, and removes the folder.
const KEEPER: &str = r#"trap '' INT; cat >/dev/null; pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
[ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null && while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done; rm -rf "$1""#;

/// A PostgreSQL server.
pub struct PostgresServer {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    /// Settings beside those of all servers.
    settings: Vec<String>,
    /// True if commits are durable.
    is_durable: bool,
    server: Mutex<Option<Child>>,
    _keeper: Child,
}

impl PostgresServer {
    /// Returns the server that the tests of a process share; `None`, and a line that says so, if PostgreSQL is not installed.
    #[must_use]
    pub fn shared() -> Option<&'static PostgresServer> {
        static SHARED: OnceLock<Option<PostgresServer>> = OnceLock::new();
        SHARED.get_or_init(PostgresServer::start).as_ref()
    }

    /// Starts a server of its own; `None`, and a line that says so, if PostgreSQL is not installed.
    ///
    /// # Panics
    /// Panics if PostgreSQL is installed, and does not start.
    #[must_use]
    pub fn start() -> Option<PostgresServer> {
        let server = PostgresServer::prepare()?;
        server.run();
        Some(server)
    }

    /// Starts a server of its own with these settings; `None`, and a line that says so, if PostgreSQL is not installed.
    ///
    /// # Panics
    /// Panics if PostgreSQL is installed, and does not start.
    #[must_use]
    pub fn start_with(settings: &[&str]) -> Option<PostgresServer> {
        let mut server = PostgresServer::prepare()?;
        server.settings.extend(settings.iter().map(|setting| (*setting).to_owned()));
        server.run();
        Some(server)
    }

    /// Starts a server of its own whose commits survive a crash of the machine, for measurements; `None`, and a line that says
    /// so, if PostgreSQL is not installed.
    ///
    /// # Panics
    /// Panics if PostgreSQL is installed, and does not start.
    #[must_use]
    pub fn start_durable() -> Option<PostgresServer> {
        let mut server = PostgresServer::prepare()?;
        server.is_durable = true;
        server.run();
        Some(server)
    }

    /// Starts a server of its own that encrypts connections to a port; `None` if PostgreSQL or `openssl` is not installed.
    ///
    /// # Panics
    /// Panics if they are installed, and it does not start.
    #[must_use]
    pub fn start_encrypted() -> Option<PostgresServer> {
        let mut server = PostgresServer::prepare()?;
        let made = server
            .as_user("openssl".as_ref())
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .arg("-keyout")
            .arg(server.folder.join("server.key"))
            .arg("-out")
            .arg(server.certificate())
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            _ = writeln!(std::io::stderr(), "SKIPPED: openssl is not installed, or makes no certificate");
            return None;
        }
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        server.port = free.expect("a port is free").port();
        server.settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", server.certificate().display()),
            format!("ssl_key_file={}", server.folder.join("server.key").display()),
        ];
        server.run();
        Some(server)
    }

    /// Returns the file of the certificate of a server that encrypts.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("server.crt")
    }

    /// Starts a standby of this server, which has everything that it has now. It gets more as long as both run.
    ///
    /// # Panics
    /// Panics if it does not start.
    #[must_use]
    pub fn standby(&self) -> PostgresServer {
        let standby = PostgresServer::in_folder().expect("this server is one");
        let mut copy = standby.program("pg_basebackup");
        copy.arg("-D").arg(standby.folder.join("data")).args(["-R", "-c", "fast", "--no-sync", "-U", "weir", "-h"]);
        let copied =
            copy.arg(&self.folder).arg("-p").arg(self.port.to_string()).output().expect("pg_basebackup is there");
        assert!(copied.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&copied.stderr));
        standby.run();
        standby
    }

    /// Creates the files of a server.
    fn prepare() -> Option<PostgresServer> {
        let server = PostgresServer::in_folder()?;
        // Not the order of bytes, which Weir has to ask for; older versions have no such option.
        let icu: &[&str] = &["--locale-provider=icu", "--icu-locale=en", "--locale=C.UTF-8"];
        let made = server.initialize(icu).or_else(|_| server.initialize(&["--locale=C"]));
        made.unwrap_or_else(|message| panic!("initdb: {message}"));
        Some(server)
    }

    /// Returns a server without files, in a folder of its own.
    fn in_folder() -> Option<PostgresServer> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let Some(programs) = programs() else {
            // Not `eprintln!`: the test harness would hide it.
            _ = writeln!(std::io::stderr(), "SKIPPED: PostgreSQL is not installed (no `initdb`)");
            return None;
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("weir-postgres-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder of our own");
        let keeper = Command::new("sh").args(["-c", KEEPER, "sh"]).arg(&folder).stdin(Stdio::piped()).spawn();
        if is_root() {
            let owned = Command::new("chown").args(["65534:65534"]).arg(&folder).status();
            assert!(owned.expect("chown is there").success());
        }
        Some(PostgresServer {
            programs,
            folder,
            port: 5432,
            settings: vec!["listen_addresses=".to_owned()],
            is_durable: false,
            server: Mutex::default(),
            _keeper: keeper.expect("a shell is there"),
        })
    }

    /// Creates the files of the server.
    fn initialize(&self, locale: &[&str]) -> Result<(), String> {
        let data = self.folder.join("data");
        let mut command = self.program("initdb");
        command.arg("-D").arg(data).args(["--username=weir", "--auth=trust", "--encoding=UTF8", "--no-sync"]);
        let made = command.args(locale).output().expect("initdb is there");
        if made.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&made.stderr).into_owned()) }
    }

    /// Starts the server again, after [`PostgresServer::crash`].
    ///
    /// # Panics
    /// Panics if it does not start.
    pub fn run(&self) {
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.folder.join("data")).arg("-k").arg(&self.folder);
        command.arg("-p").arg(self.port.to_string()).args(["-c", "max_connections=200"]);
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        // A server that is not durable is that of tests, of which many run at a time.
        if !self.is_durable {
            command.args(["-c", "fsync=off", "-c", "shared_buffers=16MB"]);
        }
        let mut server = command.stderr(Stdio::piped()).spawn().expect("postgres is there");
        let mut log = BufReader::new(server.stderr.take().expect("the log is a pipe")).lines();
        let mut seen = Vec::new();
        let ready = log.by_ref().map_while(Result::ok).any(|line| {
            // A standby accepts `read-only connections`.
            let ready = line.contains("ready to accept");
            seen.push(line);
            ready
        });
        assert!(ready, "postgres does not start: {}", seen.join("\n"));
        std::thread::spawn(move || log.for_each(drop));
        *self.server.lock().expect("no test panics here") = Some(server);
    }

    /// Returns whether the server was started, and not ended since.
    ///
    /// # Panics
    /// Panics if another thread has.
    pub fn is_running(&self) -> bool {
        self.server.lock().expect("no test panics here").is_some()
    }

    /// Ends the server at once, as if it had crashed, and waits for its end.
    ///
    /// # Panics
    /// Panics if it cannot be ended.
    pub fn crash(&self) {
        let server = self.server.lock().expect("no test panics here").take();
        let mut server = server.expect("the server runs");
        self.signal("QUIT", server.id());
        server.wait().expect("the server ends");
    }

    /// Kills the process that accepts connections, and waits for the end of the others, which notice it.
    ///
    /// # Panics
    /// Panics if it cannot be killed.
    pub fn kill(&self) {
        let server = self.server.lock().expect("no test panics here").take();
        let mut server = server.expect("the server runs");
        let others = children_of(server.id());
        self.signal("KILL", server.id());
        server.wait().expect("the server ends");
        while others.iter().any(|process| is_running(*process)) {
            std::thread::yield_now();
        }
    }

    /// Ends the server as an administrator does who does not wait for its clients: its transactions are taken back.
    ///
    /// # Panics
    /// Panics if it cannot be ended.
    pub fn stop(&self) {
        let server = self.server.lock().expect("no test panics here").take();
        let mut server = server.expect("the server runs");
        self.signal("INT", server.id());
        server.wait().expect("the server ends");
    }

    /// Kills the process of a connection of a program, so that the server ends all others, and begins anew by itself. Returns when
    /// it has.
    pub fn kill_connection(&self) {
        let find = "SELECT min(pid) FROM pg_stat_activity WHERE application_name = 'weir'";
        let tried = |sql: &str| self.psql("public", sql).output().expect("psql is there");
        let found = String::from_utf8_lossy(&tried(find).stdout).trim().parse();
        let Ok(process) = found else { return };
        self.signal("KILL", process);
        while is_running(process) || !tried("SELECT 1").status.success() {
            std::thread::yield_now();
        }
    }

    /// Ends all connections of programs.
    pub fn cut(&self) {
        self.execute(
            "public",
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'weir'",
        );
    }

    /// Stops all processes of the server, so that it answers nothing and keeps its connections, until [`PostgresServer::thaw`].
    pub fn freeze(&self) {
        self.signal_all("STOP");
    }

    /// Lets a frozen server go on.
    pub fn thaw(&self) {
        self.signal_all("CONT");
    }

    /// Executes SQL in a schema, as another program.
    ///
    /// # Panics
    /// Panics if the server refuses it.
    pub fn execute(&self, schema: &str, sql: &str) -> String {
        let done = self.psql(schema, sql).output().expect("psql is there");
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Returns the command that executes SQL in a schema, as another program.
    #[must_use]
    pub fn psql(&self, schema: &str, sql: &str) -> Command {
        let mut psql = self.program("psql");
        psql.arg("-h").arg(&self.folder).arg("-p").arg(self.port.to_string());
        psql.args(["-U", "weir", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-qtA", "-c"]);
        psql.arg(sql).env("PGOPTIONS", format!("-csearch_path={schema}"));
        psql
    }

    /// Creates an empty schema, and returns its address.
    pub fn schema(&self, name: &str) -> String {
        self.execute("public", &format!("CREATE SCHEMA \"{name}\""));
        self.address(name)
    }

    /// Returns the address of a schema.
    #[must_use]
    pub fn address(&self, schema: &str) -> String {
        let folder = self.folder.to_str().expect("a path of ASCII").replace('/', "%2F");
        format!("postgres://weir@{folder}/postgres?options=-csearch_path%3D{schema}")
    }

    /// Returns the address of a schema on this server or another one, whichever writes.
    #[must_use]
    pub fn address_with(&self, other: &PostgresServer, schema: &str) -> String {
        let folder = |server: &PostgresServer| server.folder.to_str().expect("a path of ASCII").replace('/', "%2F");
        let (first, second) = (folder(self), folder(other));
        format!(
            "postgres://weir@{first},{second}/postgres?target_session_attrs=read-write&options=-csearch_path%3D{schema}"
        )
    }

    /// Returns the socket of the server.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Returns the address of a schema over an encrypted connection, with these parameters.
    #[must_use]
    pub fn encrypted_address(&self, schema: &str, parameters: &str) -> String {
        format!("postgres://weir@127.0.0.1:{}/postgres?{parameters}&options=-csearch_path%3D{schema}", self.port)
    }

    fn program(&self, name: &str) -> Command {
        self.as_user(&self.programs.join(name))
    }

    /// Returns the command of a program that runs as a user whom PostgreSQL accepts.
    fn as_user(&self, program: &Path) -> Command {
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir("/").stdin(Stdio::null());
        command
    }

    fn signal_all(&self, signal: &str) {
        let server = self.server.lock().expect("no test panics here").as_ref().map(Child::id);
        let server = server.expect("the server runs");
        for process in children_of(server).into_iter().chain([server]) {
            self.signal(signal, process);
        }
    }

    fn signal(&self, signal: &str, process: u32) {
        // A process of a connection may have ended by itself.
        _ = Command::new("kill").arg(format!("-{signal}")).arg(process.to_string()).status();
    }
}

fn children_of(process: u32) -> Vec<u32> {
    let children = Command::new("ps").args(["-o", "pid=", "--ppid", &process.to_string()]).output();
    let children = String::from_utf8(children.expect("ps is there").stdout).expect("numbers");
    children.split_whitespace().map(|child| child.parse().expect("a number")).collect()
}

/// Returns whether a process runs; one that has ended, and whose parent has not noticed it, does not.
fn is_running(process: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|state| !state.is_empty() && !state.trim_start().starts_with('Z'))
}

/// Returns the folder with the programs of PostgreSQL.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut versions: Vec<PathBuf> =
        std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    versions.sort_by_key(|version| version.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()));
    folders.extend(versions.into_iter().rev().map(|version| version.join("bin")));
    folders.into_iter().find(|folder| ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).is_file()))
}

fn is_root() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(|| Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0"))
}
