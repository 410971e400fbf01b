//! Doc comments as HTML: paragraphs, headings, lists, fenced code, and code within lines. All else stays as it is written.

use super::page::escape;

/// What a line belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    None,
    Paragraph,
    List,
    Heading,
    Code,
}

/// A doc comment as HTML.
pub(super) fn html(markdown: &str) -> String {
    let mut out = String::new();
    let mut open = Block::None;
    for line in markdown.lines() {
        let text = line.trim();
        let next = match (open, text) {
            (Block::Code, fence) if fence.starts_with("```") => Block::None,
            (Block::Code, _) => Block::Code,
            (_, fence) if fence.starts_with("```") => Block::Code,
            (_, "") => Block::None,
            (_, heading) if heading.starts_with('#') => Block::Heading,
            (_, item) if item.starts_with("* ") || item.starts_with("- ") => Block::List,
            (Block::List, _) => Block::List,
            _ => Block::Paragraph,
        };
        let fence = text.starts_with("```");
        if next != open {
            out.push_str(closing(open));
            out.push_str(opening(next));
            open = next;
        }
        match next {
            Block::Code if fence => {}
            Block::Code => out.push_str(&(escape(line) + "\n")),
            Block::List => match text.strip_prefix("* ").or_else(|| text.strip_prefix("- ")) {
                Some(item) => out.push_str(&format!("<li>{}\n", inline(item))),
                None => out.push_str(&(inline(text) + "\n")),
            },
            Block::Heading => out.push_str(&inline(text.trim_start_matches('#').trim_start())),
            Block::Paragraph => out.push_str(&(inline(text) + "\n")),
            Block::None => {}
        }
    }
    out + closing(open)
}

fn opening(block: Block) -> &'static str {
    match block {
        Block::None => "",
        Block::Paragraph => "<p>",
        Block::List => "<ul>",
        Block::Heading => "<h4>",
        Block::Code => "<pre>",
    }
}

fn closing(block: Block) -> &'static str {
    match block {
        Block::None => "",
        Block::Paragraph => "</p>\n",
        Block::List => "</ul>\n",
        Block::Heading => "</h4>\n",
        Block::Code => "</pre>\n",
    }
}

/// A line with what stands between backquotes as code; the brackets of Rust's links fall away.
fn inline(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    });
    parts.collect::<String>().replace("[<code>", "<code>").replace("</code>]", "</code>")
}
