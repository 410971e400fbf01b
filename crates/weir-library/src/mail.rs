//! Mail by SMTP (RFC 5321): each message over a connection of its own, with TLS from the first byte on (RFC 8314), or from
//! `STARTTLS` on (`starttls`).

mod starttls;

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message, MultiPart};
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::extension::ClientId;
use weir::{Failure, FailureKind, Secret, Text};
use weir_events::{after, until};

use crate::crypto;
use crate::html::Html;
use crate::network::{Network, Reach};
use crate::tcp::{TcpTransport, transport_to};

/// Maximum number of recipients of a message.
const RECIPIENTS_MAX: usize = 100;
/// Maximum length of a message's text, and of its HTML.
const TEXT_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Builds the module `mail`.
pub(crate) fn mail() -> weir::Module {
    functions::mail()
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// Mail by SMTP.
        pub(crate) mail: super::send
    }
}

/// Parameters of `mail.send` that may be left out.
#[derive(weir::FunctionOptions)]
pub struct MailOptions {
    /// The same message as HTML, for programs that show it.
    #[default(None)]
    pub html: Option<Html>,
    /// Address for answers, if it is not that of the sender.
    #[default("")]
    pub reply_to: Text,
    /// Name of the account at the server.
    #[default("")]
    pub user: Text,
    /// Password of the account.
    #[default(None)]
    pub password: Option<Secret>,
    /// Port of the server.
    #[default(465)]
    pub port: i64,
    /// `false` for a server without TLS, such as a relay on this machine.
    #[default(true)]
    pub tls: bool,
    /// `true` for a server that begins TLS when the client asks for it, usually at port 587.
    #[default(false)]
    pub starttls: bool,
    /// Maximum duration until the server has taken the message.
    #[default(Duration::from_secs(30))]
    pub timeout: Duration,
    /// `true` if addresses of private networks are permitted.
    #[default(false)]
    pub private: bool,
}

/// Hands a message over to a mail server: `mail.send("smtp.example", from: "Shop <shop@a.example>", to: ["ada@b.example"],
/// subject: "Your order", text: "…", user: "shop", password: Some(mail_password))`. TLS begins with the connection, or, with
/// `port: 587, starttls: true`, when the server has offered it; a server that does not gets nothing.
///
/// # Errors
/// Fails if an address or the subject is not valid; if the server does not take the message for all recipients within
/// `timeout`; and as `tls.connect` does. After a failure, the server may have taken the message nevertheless.
#[weir::function(awaits_peer)]
pub async fn send(
    #[environment] network: &Network,
    server: Text,
    from: Text,
    to: Vec<Text>,
    subject: Text,
    text: Text,
    #[options] options: MailOptions,
) -> Result<(), Failure> {
    let message = message((&from, &to), &subject, &text, &options)?;
    let timeout = options.timeout;
    let late = || Failure::new(FailureKind::Timeout, format!("`{server}` did not take the message within {timeout:?}"));
    let delivering = deliver(network, &server, &message, &options);
    until(pin!(delivering), &after(timeout)).await.unwrap_or_else(|()| Err(late()))
}

/// Composes the message.
fn message((from, to): (&str, &[Text]), subject: &str, text: &str, options: &MailOptions) -> Result<Message, Failure> {
    if to.is_empty() || to.len() > RECIPIENTS_MAX {
        return Err(Failure::argument(format!("a message has 1 to {RECIPIENTS_MAX} recipients, not {}", to.len())));
    }
    let html = options.html.as_ref().map(Html::as_str);
    if text.len().max(html.map_or(0, str::len)) > TEXT_BYTES_MAX {
        return Err(Failure::new(FailureKind::Limit, format!("the message has more than {TEXT_BYTES_MAX} bytes")));
    }
    if subject.contains(char::is_control) {
        return Err(Failure::argument("a subject is one line"));
    }
    let from = mailbox(from)?;
    let id = format!("<{}@{}>", crypto::token(16).0?, from.email.domain());
    let mut builder = Message::builder().from(from).subject(subject).message_id(Some(id));
    for recipient in to {
        builder = builder.to(mailbox(recipient)?);
    }
    if !options.reply_to.is_empty() {
        builder = builder.reply_to(mailbox(&options.reply_to)?);
    }
    let composed = match html {
        Some(html) => builder.multipart(MultiPart::alternative_plain_html(text.to_owned(), html.to_owned())),
        None => builder.header(ContentType::TEXT_PLAIN).body(text.to_owned()),
    };
    composed.map_err(|error| Failure::argument(format!("the message cannot be composed: {error}")))
}

fn mailbox(text: &str) -> Result<Mailbox, Failure> {
    let invalid = |_| Failure::argument(format!("{text:?} is not an address such as \"Ada <ada@a.example>\""));
    if text.contains(char::is_control) {
        return Err(Failure::argument(format!("{text:?} is not an address: it is not one line")));
    }
    text.parse().map_err(invalid)
}

/// Connects to the server, and hands the message over.
async fn deliver(network: &Network, server: &str, message: &Message, options: &MailOptions) -> Result<(), Failure> {
    let credentials = credentials(options)?;
    let reach = Reach::of(options.private);
    if options.starttls && !options.tls {
        return Err(Failure::argument("`starttls: true` begins TLS, which `tls: false` excludes"));
    }
    let at_once = options.tls && !options.starttls;
    let (stream, _permit) = transport_to(network, (server, options.port), reach, at_once).await?;
    let domain = message.envelope().from().map_or("localhost", |from| from.domain()).to_owned();
    let refused = |error: lettre::transport::smtp::Error| {
        Failure::function(format!("`{server}` has not taken the message: {error}"))
    };
    let stream: Box<dyn AsyncTokioStream> = match stream {
        TcpTransport::Plain(stream) if options.starttls => {
            Box::new(starttls::secured(network, (server, &domain), stream).await?)
        }
        stream => Box::new(stream),
    };
    let connected = AsyncSmtpConnection::connect_with_transport(stream, &ClientId::Domain(domain)).await;
    let mut connection = connected.map_err(refused)?;
    if let Some(credentials) = credentials {
        connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await.map_err(refused)?;
    }
    connection.send(message.envelope(), &message.formatted()).await.map_err(refused)?;
    // The server has the message, whatever it says to this.
    let _ = connection.quit().await;
    Ok(())
}

fn credentials(options: &MailOptions) -> Result<Option<Credentials>, Failure> {
    let Some(password) = &options.password else { return Ok(None) };
    if !options.tls {
        return Err(Failure::argument("a password is sent over TLS only"));
    }
    let password =
        std::str::from_utf8(password.reveal()).map_err(|_| Failure::argument("the password is not a text"))?;
    Ok(Some(Credentials::new(options.user.to_string(), password.to_owned())))
}

impl AsyncTokioStream for TcpTransport {
    fn peer_addr(&self) -> std::io::Result<SocketAddr> {
        self.peer()
    }
}
