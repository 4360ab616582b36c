/* The few calls that decode/src/jpeg/handle.rs needs of libjpeg-turbo.
 *
 * Written in C because libjpeg reports errors by a callback that must not return, and setjmp is for C alone; and because
 * the layout of its structures is known here from the very headers of the library that is linked.
 *
 * Rules: a call that answers anything but FARHAUL_OK leaves the handle ready for the next open. Nothing is printed. The
 * bytes given to open must stay until the next open or close. Input that ends early is answered with an end marker, as
 * libjpeg asks for, and remembered.
 */
#include <limits.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

enum {
  FARHAUL_OK = 0,
  FARHAUL_MALFORMED = 1,
  FARHAUL_TRUNCATED = 2,
  FARHAUL_UNSUPPORTED = 3,
  FARHAUL_TOO_LARGE = 4,
  FARHAUL_NO_MEMORY = 5
};

typedef struct {
  uint32_t width, height, components;
  uint32_t is_cmyk;        /* four components: rows come as stored C'M'Y'K' */
  uint32_t is_multi_scan;  /* all of it is decoded before the first row comes */
  uint32_t mcu_width, mcu_height;
} farhaul_jpeg_header;

typedef struct {
  uint32_t x, width, output_width, output_height;
} farhaul_jpeg_region;

typedef struct {
  struct jpeg_decompress_struct info;
  struct jpeg_error_mgr errors;
  struct jpeg_source_mgr source;
  struct jpeg_progress_mgr progress;
  jmp_buf escape;
  int status;
  int input_ended;    /* the decoder wanted more bytes than there are */
  int data_missing;   /* pixels were made up because coded data ended early */
  int accept_partial; /* keep going when data_missing */
  int multi_scan;
  int max_scans;
  char message[JMSG_LENGTH_MAX];
} farhaul_jpeg;

static const JOCTET END_MARKER[2] = { 0xFF, JPEG_EOI };

static int status_of(farhaul_jpeg *jpeg, int code)
{
  switch (code) {
  case JERR_SOF_UNSUPPORTED:
  case JERR_BAD_PRECISION:
  case JERR_ARITH_NOTIMPL:
  case JERR_NOTIMPL:
  case JERR_NOT_COMPILED:
  case JERR_CONVERSION_NOTIMPL:
  case JERR_FRACT_SAMPLE_NOTIMPL:
  case JERR_CCIR601_NOTIMPL:
  case JERR_COMPONENT_COUNT:
    return FARHAUL_UNSUPPORTED;
  case JERR_IMAGE_TOO_BIG:
  case JERR_NO_BACKING_STORE:
  case JERR_WIDTH_OVERFLOW:
    return FARHAUL_TOO_LARGE;
  case JERR_OUT_OF_MEMORY:
    return FARHAUL_NO_MEMORY;
  default:
    /* What libjpeg says when bytes run out in the middle of a segment is an effect, not the cause. */
    return jpeg->input_ended ? FARHAUL_TRUNCATED : FARHAUL_MALFORMED;
  }
}

static void leave(farhaul_jpeg *jpeg, int status)
{
  jpeg->status = status;
  longjmp(jpeg->escape, 1);
}

static void on_error(j_common_ptr info)
{
  farhaul_jpeg *jpeg = (farhaul_jpeg *)info->client_data;
  (*info->err->format_message)(info, jpeg->message);
  leave(jpeg, status_of(jpeg, info->err->msg_code));
}

/* Warnings that change pixels end the decoding; all others are no concern of anyone. */
static void on_message(j_common_ptr info, int level)
{
  farhaul_jpeg *jpeg = (farhaul_jpeg *)info->client_data;
  if (level >= 0)
    return;
  switch (info->err->msg_code) {
  case JWRN_HIT_MARKER: /* coded data ended before the picture: the rest of the blocks would be invented */
    jpeg->data_missing = 1;
    if (!jpeg->accept_partial) {
      (*info->err->format_message)(info, jpeg->message);
      leave(jpeg, FARHAUL_TRUNCATED);
    }
    return;
  case JWRN_HUFF_BAD_CODE:
  case JWRN_ARITH_BAD_CODE:
  case JWRN_MUST_RESYNC:
    if (jpeg->input_ended && jpeg->accept_partial)
      return;
    (*info->err->format_message)(info, jpeg->message);
    leave(jpeg, FARHAUL_MALFORMED);
  }
}

static void on_output(j_common_ptr info)
{
  (void)info;
}

static void on_progress(j_common_ptr info)
{
  farhaul_jpeg *jpeg = (farhaul_jpeg *)info->client_data;
  /* Each scan costs a pass over the whole picture, however few bytes it has. */
  if (info->is_decompressor && ((j_decompress_ptr)info)->input_scan_number > jpeg->max_scans) {
    snprintf(jpeg->message, sizeof jpeg->message, "more than %d scans", jpeg->max_scans);
    leave(jpeg, FARHAUL_TOO_LARGE);
  }
}

static void source_init(j_decompress_ptr info)
{
  (void)info;
}

static boolean source_fill(j_decompress_ptr info)
{
  ((farhaul_jpeg *)info->client_data)->input_ended = 1;
  info->src->next_input_byte = END_MARKER;
  info->src->bytes_in_buffer = sizeof END_MARKER;
  return TRUE;
}

static void source_skip(j_decompress_ptr info, long count)
{
  if (count <= 0)
    return;
  if ((size_t)count > info->src->bytes_in_buffer) {
    source_fill(info);
    return;
  }
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= (size_t)count;
}

void farhaul_jpeg_close(farhaul_jpeg *jpeg)
{
  if (jpeg == NULL)
    return;
  jpeg_destroy_decompress(&jpeg->info);
  free(jpeg);
}

/* Apart from farhaul_jpeg_new, so that no variable of that is at the mercy of longjmp. */
static int create(farhaul_jpeg *jpeg)
{
  if (setjmp(jpeg->escape))
    return 0;
  jpeg_create_decompress(&jpeg->info);
  return 1;
}

farhaul_jpeg *farhaul_jpeg_new(void)
{
  farhaul_jpeg *jpeg = calloc(1, sizeof *jpeg);
  if (jpeg == NULL)
    return NULL;
  jpeg->info.err = jpeg_std_error(&jpeg->errors);
  jpeg->errors.error_exit = on_error;
  jpeg->errors.emit_message = on_message;
  jpeg->errors.output_message = on_output;
  jpeg->info.client_data = jpeg;
  if (!create(jpeg)) {
    farhaul_jpeg_close(jpeg);
    return NULL;
  }
  jpeg->source.init_source = source_init;
  jpeg->source.fill_input_buffer = source_fill;
  jpeg->source.skip_input_data = source_skip;
  jpeg->source.resync_to_restart = jpeg_resync_to_restart;
  jpeg->source.term_source = source_init;
  jpeg->info.src = &jpeg->source;
  jpeg->progress.progress_monitor = on_progress;
  jpeg->info.progress = &jpeg->progress;
  return jpeg;
}

static int failed(farhaul_jpeg *jpeg)
{
  /* Aborting frees what belongs to this picture; it runs no code of the source and raises no error. */
  jpeg_abort_decompress(&jpeg->info);
  return jpeg->status;
}

const char *farhaul_jpeg_message(const farhaul_jpeg *jpeg)
{
  return jpeg->message;
}

/* True where only the end marker tells that nothing is missing: more scans might have followed, or the coded data are
 * arithmetic, which may leave out its last bytes and so is never found to be short. */
static int needs_end_marker(const farhaul_jpeg *jpeg)
{
  return jpeg->multi_scan || jpeg->info.arith_code;
}

/* True where the end marker is missing and pixels may be. */
static int lacks_end_marker(farhaul_jpeg *jpeg)
{
  if (!jpeg->input_ended || jpeg->accept_partial || !needs_end_marker(jpeg))
    return 0;
  snprintf(jpeg->message, sizeof jpeg->message, "the data end without an end marker");
  jpeg->status = FARHAUL_TRUNCATED;
  return 1;
}

int farhaul_jpeg_is_partial(const farhaul_jpeg *jpeg)
{
  return jpeg->data_missing || (jpeg->input_ended && needs_end_marker(jpeg));
}

/* Reads the header. Memory for coefficients is bounded by max_memory bytes. */
int farhaul_jpeg_open(farhaul_jpeg *jpeg, const uint8_t *data, size_t size, uint64_t max_memory, int max_scans,
                      int accept_partial, farhaul_jpeg_header *header)
{
  j_decompress_ptr info = &jpeg->info;
  jpeg->message[0] = '\0';
  jpeg->status = FARHAUL_OK;
  jpeg->input_ended = 0;
  jpeg->data_missing = 0;
  jpeg->accept_partial = accept_partial;
  jpeg->max_scans = max_scans;
  if (setjmp(jpeg->escape))
    return failed(jpeg);
  jpeg_abort_decompress(info);
  info->mem->max_memory_to_use = max_memory > LONG_MAX ? LONG_MAX : (long)max_memory;
  jpeg->source.next_input_byte = data;
  jpeg->source.bytes_in_buffer = size;
  jpeg_read_header(info, TRUE);
  header->width = info->image_width;
  header->height = info->image_height;
  header->components = (uint32_t)info->num_components;
  jpeg->multi_scan = jpeg_has_multiple_scans(info) != 0;
  header->is_multi_scan = (uint32_t)jpeg->multi_scan;
  header->is_cmyk = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
  if (info->data_precision != 8 || info->jpeg_color_space == JCS_UNKNOWN) {
    snprintf(jpeg->message, sizeof jpeg->message, "%d components of %d bits", info->num_components, info->data_precision);
    jpeg->status = FARHAUL_UNSUPPORTED;
    return failed(jpeg);
  }
  header->mcu_width = (uint32_t)info->max_h_samp_factor * 8;
  header->mcu_height = (uint32_t)info->max_v_samp_factor * 8;
  return FARHAUL_OK;
}

/* Starts decoding at scale eighths/8, all rows, the columns from x on for width pixels (of the scaled picture), widened to
 * whole blocks as region then says. Multi-scan pictures are decoded here. */
int farhaul_jpeg_start(farhaul_jpeg *jpeg, int eighths, uint32_t x, uint32_t width, farhaul_jpeg_region *region)
{
  j_decompress_ptr info = &jpeg->info;
  if (setjmp(jpeg->escape))
    return failed(jpeg);
  info->scale_num = (unsigned int)eighths;
  info->scale_denom = 8;
  info->out_color_space =
    info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(info);
  if (lacks_end_marker(jpeg))
    return failed(jpeg);
  region->x = 0;
  region->width = info->output_width;
  region->output_width = info->output_width;
  region->output_height = info->output_height;
  if (x > 0 || width < info->output_width) {
    JDIMENSION from = x, count = width;
    jpeg_crop_scanline(info, &from, &count);
    region->x = from;
    region->width = count;
  }
  return FARHAUL_OK;
}

/* Writes rows y .. y+rows into target, stride bytes apart; then, with read_on, reads on to the last row, so that a picture
 * whose data end early is found out whatever region was wanted. The handle is then done. */
int farhaul_jpeg_rows(farhaul_jpeg *jpeg, uint32_t y, uint32_t rows, uint8_t *target, size_t stride, int read_on)
{
  j_decompress_ptr info = &jpeg->info;
  JDIMENSION left;
  if (setjmp(jpeg->escape))
    return failed(jpeg);
  if (y > 0)
    jpeg_skip_scanlines(info, y);
  while (info->output_scanline < y + rows) {
    JSAMPROW lines[4];
    int count;
    JDIMENSION at = info->output_scanline - y;
    for (count = 0; count < 4 && at + (JDIMENSION)count < rows; count++)
      lines[count] = target + (size_t)(at + (JDIMENSION)count) * stride;
    if (jpeg_read_scanlines(info, lines, (JDIMENSION)count) == 0)
      break;
  }
  /* Skipping to the very end would leave the coded data unread, so the last row is read for its own sake. */
  left = info->output_height - info->output_scanline;
  if (left > 0 && read_on && !jpeg->multi_scan) {
    size_t bytes = (size_t)info->output_width * (size_t)info->output_components;
    JSAMPROW line = (JSAMPROW)(*info->mem->alloc_large)((j_common_ptr)info, JPOOL_IMAGE, bytes + 64);
    if (left > 1)
      jpeg_skip_scanlines(info, left - 1);
    jpeg_read_scanlines(info, &line, 1);
  }
  if (lacks_end_marker(jpeg))
    return failed(jpeg);
  jpeg_abort_decompress(info);
  return FARHAUL_OK;
}
