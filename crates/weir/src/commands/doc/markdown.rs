//! Doc comments as HTML: paragraphs, headings, lists, fenced code, and code within lines. All else stays as it is written.

use super::page::escape;

/// The block that a line belongs to.
#[derive(Clone, Copy, PartialEq)]
enum MarkdownBlock {
    None,
    Paragraph,
    List,
    Heading,
    Code,
}

/// Converts a doc comment to HTML.
pub(super) fn html(markdown: &str) -> String {
    let mut out = String::new();
    let mut open = MarkdownBlock::None;
    for line in markdown.lines() {
        let text = line.trim();
        let next = match (open, text) {
            (MarkdownBlock::Code, fence) if fence.starts_with("```") => MarkdownBlock::None,
            (MarkdownBlock::Code, _) => MarkdownBlock::Code,
            (_, fence) if fence.starts_with("```") => MarkdownBlock::Code,
            (_, "") => MarkdownBlock::None,
            (_, heading) if heading.starts_with('#') => MarkdownBlock::Heading,
            (_, item) if item.starts_with("* ") || item.starts_with("- ") => MarkdownBlock::List,
            (MarkdownBlock::List, _) => MarkdownBlock::List,
            _ => MarkdownBlock::Paragraph,
        };
        let fence = text.starts_with("```");
        if next != open {
            out.push_str(closing(open));
            out.push_str(opening(next));
            open = next;
        }
        match next {
            MarkdownBlock::Code if fence => {}
            MarkdownBlock::Code => out.push_str(&(escape(line) + "\n")),
            MarkdownBlock::List => match text.strip_prefix("* ").or_else(|| text.strip_prefix("- ")) {
                Some(item) => out.push_str(&format!("<li>{}\n", inline(item))),
                None => out.push_str(&(inline(text) + "\n")),
            },
            MarkdownBlock::Heading => out.push_str(&inline(text.trim_start_matches('#').trim_start())),
            MarkdownBlock::Paragraph => out.push_str(&(inline(text) + "\n")),
            MarkdownBlock::None => {}
        }
    }
    out + closing(open)
}

fn opening(block: MarkdownBlock) -> &'static str {
    match block {
        MarkdownBlock::None => "",
        MarkdownBlock::Paragraph => "<p>",
        MarkdownBlock::List => "<ul>",
        MarkdownBlock::Heading => "<h4>",
        MarkdownBlock::Code => "<pre>",
    }
}

fn closing(block: MarkdownBlock) -> &'static str {
    match block {
        MarkdownBlock::None => "",
        MarkdownBlock::Paragraph => "</p>\n",
        MarkdownBlock::List => "</ul>\n",
        MarkdownBlock::Heading => "</h4>\n",
        MarkdownBlock::Code => "</pre>\n",
    }
}

/// Converts the text of a line; text in backquotes becomes code, and the brackets of Rust links are dropped.
fn inline(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    });
    parts.collect::<String>().replace("[<code>", "<code>").replace("</code>]", "</code>")
}
