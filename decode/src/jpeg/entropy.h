/* Huffman decoding of sequential scans, in place of libjpeg-turbo's own.
 *
 * Three quarters of the time of a JPEG at training quality are spent here. One look at a table of ENTROPY_BITS bits gives
 * the code, the run and the value after it at once (libjpeg looks up the code and then takes the value); and the data are
 * freed of stuffed bytes beforehand, so that bits are taken in without a branch. It answers what libjpeg answers, coefficient for coefficient; only it knows nothing of restart
 * markers, suspension and going on after an error, for which libjpeg's own stays in use.
 *
 * Included by shim.c alone.
 */
#define ENTROPY_BITS 11

/* Inlined, so that one copy knows that there is a block to fill and another that there is none. */
#if defined(__GNUC__)
#define ENTROPY_INLINE static inline __attribute__((always_inline))
#else
#define ENTROPY_INLINE static inline
#endif

typedef struct {
  UINT8 bits[17];
  UINT8 huffval[256];
  uint8_t known;
  int32_t longest[18];  /* largest code of each length, left-aligned in 16 bits, plus one; from ENTROPY_BITS on */
  int32_t offset[18];   /* index of the symbol of a code of this length, less the code */
  /* Low byte: bits of code and value, or 0 where the table does not have them. Second byte: how far the index moves, past
   * the end for the end of a block; or, where the low byte is 0, the length of the code, 0 if it is longer than the table's
   * index. Upper half: the value, or the symbol where the low byte is 0. */
  int32_t entries[1 << ENTROPY_BITS];
} entropy_table;

typedef struct {
  const uint8_t *next;
  uint64_t buffer; /* the next bits, the first of them uppermost; below those that are counted may stand some that follow */
  int bits;        /* how many are counted */
} entropy_bits;

typedef struct {
  entropy_bits input;
  uint8_t *data; /* the coded data without what is stuffed into them, and zeros behind */
  size_t size, capacity;
  uint32_t last_dc[MAX_COMPS_IN_SCAN];
  entropy_table dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];
} entropy_state;

/* Zigzag to natural order; runs that lead past the end are led to the last, as in libjpeg, and the end of a block, whose
 * value is 0, to a coefficient that is 0 anyway. */
#define LAST8 63, 63, 63, 63, 63, 63, 63, 63
static const uint8_t NATURAL[64 + 128] = {
  0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
  35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55,
  62, 63, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8, LAST8
};
#define PAST_THE_END 127

/* The value that s bits stand for. */
static inline int32_t entropy_extend(uint32_t value, int s)
{
  return s > 0 && value < (1u << (s - 1)) ? (int32_t)value - (int32_t)(1u << s) + 1 : (int32_t)value;
}

/* Makes the table unless it is that of the picture before. libjpeg has found the codes valid. */
static void entropy_prepare(entropy_table *table, const JHUFF_TBL *source, int is_ac)
{
  int length, i, symbol = 0;
  uint32_t code = 0;
  if (table->known && memcmp(table->bits, source->bits, 17) == 0 && memcmp(table->huffval, source->huffval, 256) == 0)
    return;
  memcpy(table->bits, source->bits, 17);
  memcpy(table->huffval, source->huffval, 256);
  table->known = 1;
  memset(table->entries, 0, sizeof table->entries);
  for (length = 1; length <= 16; length++) {
    table->offset[length] = symbol - (int32_t)code;
    for (i = 0; i < source->bits[length] && symbol < 256; i++, code++, symbol++) {
      int value = source->huffval[symbol];
      int s = is_ac ? value & 15 : value;
      int run = is_ac ? value >> 4 : 0;
      int spare = ENTROPY_BITS - length;
      int advance = s > 0 ? run + 1 : run == 15 ? 16 : PAST_THE_END;
      uint32_t rest;
      if (spare < 0)
        continue;
      for (rest = 0; rest < (1u << spare); rest++) {
        int32_t entry;
        if (s <= spare)
          entry = entropy_extend(rest >> (spare - s), s) * 65536 + advance * 256 + length + s;
        else
          entry = value * 65536 + length * 256;
        table->entries[((code << spare) + rest) & ((1u << ENTROPY_BITS) - 1)] = entry;
      }
    }
    table->longest[length] = (int32_t)(code << (16 - length));
    code <<= 1;
  }
}

/* More than a block can take, so that its end may be compared with that of the data afterwards. */
#define ENTROPY_PADDING 512

/* Copies the coded data up to the first marker, without the bytes that are stuffed into them. 0 where there is no memory. */
static int entropy_load(entropy_state *state, const uint8_t *data, size_t size)
{
  const uint8_t *end = data + size;
  uint8_t *target;
  if (state->capacity < size + ENTROPY_PADDING) {
    size_t capacity = size + size / 4 + ENTROPY_PADDING;
    free(state->data);
    state->data = malloc(capacity);
    state->capacity = state->data != NULL ? capacity : 0;
    if (state->data == NULL)
      return 0;
  }
  target = state->data;
  for (;;) {
    const uint8_t *stop = memchr(data, 0xFF, (size_t)(end - data)), *after;
    size_t count = (size_t)((stop != NULL ? stop : end) - data);
    memcpy(target, data, count);
    target += count;
    if (stop == NULL)
      break;
    for (after = stop + 1; after < end && *after == 0xFF; after++) {
    }
    if (after >= end || *after != 0)
      break;
    *target++ = 0xFF;
    data = after + 1;
  }
  state->size = (size_t)(target - state->data);
  memset(target, 0, ENTROPY_PADDING);
  state->input.next = state->data;
  state->input.buffer = 0;
  state->input.bits = 0;
  return 1;
}

/* True where more bits have been taken than there were. */
static inline int entropy_is_short(const entropy_state *state, const entropy_bits *input)
{
  return (input->next - state->data) * 8 - input->bits > (ptrdiff_t)state->size * 8;
}

/* At least 56 bits. No branch: when it is time to is not to be foreseen. */
#define ENTROPY_REFILL(input) \
  do { \
    uint64_t word; \
    memcpy(&word, (input).next, 8); \
    (input).buffer |= ENTROPY_BIG_ENDIAN(word) >> (input).bits; \
    (input).next += (63 - (input).bits) >> 3; \
    (input).bits |= 56; \
  } while (0)

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define ENTROPY_BIG_ENDIAN(word) (word)
#else
#define ENTROPY_BIG_ENDIAN(word) __builtin_bswap64(word)
#endif

#define ENTROPY_DROP(input, count) ((input).buffer <<= (count), (input).bits -= (count))

/* The length of a code that is longer than the table's index; 17 where there is none. */
static int entropy_length(const entropy_table *table, uint64_t buffer)
{
  int length = ENTROPY_BITS + 1;
  while (length <= 16 && (int32_t)(buffer >> 48) >= table->longest[length])
    length++;
  return length;
}

/* Takes a code that the table does not have together with its value; symbol is -1 where there is none. */
#define ENTROPY_TAKE_SYMBOL(input, table, entry, symbol) \
  do { \
    int length = ((entry) >> 8) & 255; \
    if (length > 0) { \
      (symbol) = ((entry) >> 16) & 255; \
      ENTROPY_DROP(input, length); \
    } else if ((length = entropy_length(table, (input).buffer)) <= 16) { \
      (symbol) = (table)->huffval[((int32_t)((input).buffer >> (64 - length)) + (table)->offset[length]) & 255]; \
      ENTROPY_DROP(input, length); \
    } else { \
      (symbol) = -1; \
    } \
  } while (0)

/* Takes the s bits (1 to 15) of a value. */
#define ENTROPY_TAKE_VALUE(input, s, value) \
  do { \
    (value) = entropy_extend((uint32_t)((input).buffer >> (64 - (s))), s); \
    ENTROPY_DROP(input, s); \
  } while (0)

/* Decodes a block; block is NULL where nobody wants its coefficients. 0 where a code is none, whose bits stay. */
ENTROPY_INLINE int entropy_block(entropy_bits *outer, const entropy_table *dc, const entropy_table *ac, uint32_t *last_dc,
                                JCOEF *block)
{
  entropy_bits input = *outer;
  int32_t entry, value = 0;
  int k = 1, symbol;

  ENTROPY_REFILL(input);
  entry = dc->entries[input.buffer >> (64 - ENTROPY_BITS)];
  if (entry & 255) {
    value = entry >> 16;
    ENTROPY_DROP(input, entry & 255);
  } else {
    ENTROPY_TAKE_SYMBOL(input, dc, entry, symbol);
    if (symbol < 0 || symbol > 15) {
      *outer = input;
      return 0;
    }
    if (symbol > 0)
      ENTROPY_TAKE_VALUE(input, symbol, value);
  }
  *last_dc += (uint32_t)value;
  if (block != NULL)
    block[0] = (JCOEF)*last_dc;

  do {
    int tries = 56 / ENTROPY_BITS;
    ENTROPY_REFILL(input);
    /* As many looks at the table as there are bits for. */
    do {
      entry = ac->entries[input.buffer >> (64 - ENTROPY_BITS)];
      if ((entry & 255) == 0)
        break;
      k += (entry >> 8) & 255;
      if (block != NULL)
        block[NATURAL[k - 1]] = (JCOEF)(entry >> 16);
      ENTROPY_DROP(input, entry & 255);
    } while (--tries > 0 && k < DCTSIZE2);
    if ((entry & 255) == 0) {
      ENTROPY_REFILL(input);
      ENTROPY_TAKE_SYMBOL(input, ac, entry, symbol);
      if (symbol < 0) {
        *outer = input;
        return 0;
      }
      if ((symbol & 15) == 0) {
        k += symbol == 0xF0 ? 16 : PAST_THE_END;
      } else {
        ENTROPY_TAKE_VALUE(input, symbol & 15, value);
        k += (symbol >> 4) + 1;
        if (block != NULL)
          block[NATURAL[k - 1]] = (JCOEF)value;
      }
    }
  } while (k < DCTSIZE2);
  *outer = input;
  return 1;
}
