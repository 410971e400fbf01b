// External scanner: line ends that end a statement, and the content of texts.

#include "tree_sitter/parser.h"
#include <string.h>

enum Token { LINE_END, TEXT_CONTENT, BLOCK_CONTENT, ERROR_SENTINEL };

void *tree_sitter_weir_external_scanner_create(void) { return NULL; }
void tree_sitter_weir_external_scanner_destroy(void *state) { (void)state; }
unsigned tree_sitter_weir_external_scanner_serialize(void *state, char *buffer) { (void)state; (void)buffer; return 0; }
void tree_sitter_weir_external_scanner_deserialize(void *state, const char *buffer, unsigned length) {
  (void)state; (void)buffer; (void)length;
}

static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == 0xfeff; }

static bool is_word(int32_t c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c > 127;
}

// Reads the next word into the buffer. Returns false if it does not fit.
static bool read_word(TSLexer *lexer, char word[8]) {
  unsigned length = 0;
  while (length < 7 && is_word(lexer->lookahead)) {
    word[length++] = (char)lexer->lookahead;
    lexer->advance(lexer, false);
  }
  word[length] = 0;
  return !is_word(lexer->lookahead);
}

// Returns true if the next token continues the previous line: a dot, a pipe, an operator other than minus, or a word that joins.
static bool goes_on(TSLexer *lexer) {
  char word[8];
  switch (lexer->lookahead) {
    case '+': case '*': case '/': case '%': case '<': case '>': case '?':
      return true;
    case '.':
      lexer->advance(lexer, false);
      return lexer->lookahead != '.';
    case '|':
      lexer->advance(lexer, false);
      return lexer->lookahead == '>' || lexer->lookahead == '|';
    case '&':
      lexer->advance(lexer, false);
      return lexer->lookahead == '&';
    case '=': case '!':
      lexer->advance(lexer, false);
      return lexer->lookahead == '=';
    default:
      if (!read_word(lexer, word)) return false;
      if (strcmp(word, "at")) return !strcmp(word, "else") || !strcmp(word, "within") || !strcmp(word, "until");
      while (is_blank(lexer->lookahead)) lexer->advance(lexer, false);
      return read_word(lexer, word) && !strcmp(word, "end");
  }
}

// Skips spaces, line ends and comments. Returns false if a lone slash was skipped, which is an operator.
static bool skip_to_token(TSLexer *lexer) {
  for (;;) {
    while (is_blank(lexer->lookahead) || lexer->lookahead == '\n') lexer->advance(lexer, true);
    if (lexer->lookahead != '/') return true;
    lexer->advance(lexer, false);
    if (lexer->lookahead != '/') return false;
    while (lexer->lookahead != '\n' && !lexer->eof(lexer)) lexer->advance(lexer, false);
  }
}

static bool scan_line_end(TSLexer *lexer) {
  while (is_blank(lexer->lookahead)) lexer->advance(lexer, true);
  if (lexer->lookahead != '\n') return false;
  lexer->advance(lexer, true);
  lexer->mark_end(lexer);
  lexer->result_symbol = LINE_END;
  return skip_to_token(lexer) && !goes_on(lexer);
}

// Scans the characters of a text up to its quotes, an escape, an interpolation, or (on one line) the line end.
static bool scan_content(TSLexer *lexer, bool block) {
  bool found = false;
  lexer->result_symbol = block ? BLOCK_CONTENT : TEXT_CONTENT;
  while (!lexer->eof(lexer)) {
    int32_t c = lexer->lookahead;
    if (c == '{' || c == '\\' || (!block && (c == '"' || c == '\n'))) break;
    if (block && c == '"') {
      unsigned quotes = 0;
      lexer->mark_end(lexer);
      while (quotes < 3 && lexer->lookahead == '"') {
        lexer->advance(lexer, false);
        quotes++;
      }
      if (quotes == 3) return found;
      found = true;
      continue;
    }
    lexer->advance(lexer, false);
    found = true;
  }
  lexer->mark_end(lexer);
  return found;
}

bool tree_sitter_weir_external_scanner_scan(void *state, TSLexer *lexer, const bool *valid) {
  (void)state;
  if (valid[ERROR_SENTINEL]) return false;
  if (valid[TEXT_CONTENT]) return scan_content(lexer, false);
  if (valid[BLOCK_CONTENT]) return scan_content(lexer, true);
  return valid[LINE_END] && scan_line_end(lexer);
}
