//! TCP: connections as values, and streams of connections and lines.

mod connect;
mod connection;
mod idle_timeout;
mod listen;
mod transport;
mod zero_copy;

pub use connect::{ConnectOptions, connect, connect_tls};
pub(crate) use connect::{remote_port, transport_to, with_tls};
pub use connection::{
    Connection, close, peer, read, read_exactly, read_line, read_until, send_file, write, write_both, write_text,
};
pub(crate) use listen::address;
pub(crate) use transport::TcpTransport;

/// Builds the module `tls`.
pub(crate) fn tls() -> weir::Module {
    tls_functions::tls()
}

mod tls_functions {
    //! The functions of `tls`, in a submodule because `library!` generates a function named like the module.

    use super::connect;

    weir::library! {
        /// TLS: connections that are encrypted, to hosts whose certificates are checked.
        pub(crate) tls: connect::connect_tls
    }
}

/// Builds the module `tcp`.
pub(crate) fn tcp() -> weir::Module {
    let module = listen::connections().listening_within(functions::tcp(), weir::ListenProtocol::Tcp);
    listen::lines().listening_within(module, weir::ListenProtocol::Tcp)
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    use super::{connect, connection};

    weir::library! {
        /// TCP: connections as values, and streams of connections and lines.
        pub(crate) tcp: connect::connect, connection::peer, connection::read, connection::read_exactly, connection::read_line,
            connection::read_until, connection::write, connection::write_text, connection::write_both,
            connection::send_file, connection::close
    }
}
