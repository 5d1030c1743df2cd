#include "config.h"

#include "rcopy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file that a signal removes. */
static struct rcopy_file *volatile coming;

static void end_process(int number)
{
	if (coming)
		unlinkat(coming->dir, coming->part, 0);
	signal(number, SIG_DFL);
	raise(number);
}

void rcopy_file_guard(void)
{
	signal(SIGINT, end_process);
	signal(SIGTERM, end_process);
	signal(SIGHUP, end_process);
	signal(SIGXFSZ, SIG_IGN);
}

/* The rest of a path behind the folder, or NULL when it does not begin with it. */
static const char *skip_folder(const char *folder, const char *path)
{
	char *real = realpath(folder, NULL);
	size_t len = real ? strlen(real) : 0;
	const char *rest = NULL;

	if (real && !strcmp(real, "/"))
		rest = path;
	else if (real && !strncmp(path, real, len) && path[len] == '/')
		rest = path + len;
	free(real);
	return rest;
}

/* One step down. What is no folder, a link among them, is none. */
static int enter(int dir, const char *name)
{
	int next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err = errno;
	struct stat stat;

	if (next < 0 && !fstatat(dir, name, &stat, AT_SYMLINK_NOFOLLOW) && S_ISLNK(stat.st_mode))
		err = EACCES;
	close(dir);
	return next < 0 ? -err : next;
}

/*
 * Goes down to the folder of the file, whose name is left in name. Returns the folder or -errno.
 */
static int descend(int dir, const char *path, char *name)
{
	size_t len;

	for (;;) {
		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len > NAME_MAX || !len || (len == 2 && !strncmp(path, "..", 2))) {
			close(dir);
			return len > NAME_MAX ? -ENAMETOOLONG : len ? -EACCES : -EISDIR;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		path += len;
		if (!*path)
			return dir;
		if (strcmp(name, ".") && (dir = enter(dir, name)) < 0)
			return dir;
	}
}

/* What cannot be replaced by a file is found out before the data comes. */
static int check_name(struct rcopy_file *file)
{
	struct stat stat;

	if (!strcmp(file->name, "."))
		return -EISDIR;
	if (fstatat(file->dir, file->name, &stat, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(stat.st_mode))
		return -EISDIR;
	return S_ISREG(stat.st_mode) ? 0 : -EACCES;
}

/* Nobody can guess it, so that no client's file is in the way, and the part is in none's. */
static int name_part(struct rcopy_file *file)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	snprintf(file->part, sizeof(file->part), ".rcopy-%016" PRIx64, number);
	return 0;
}

/* A signal may come as soon as it is there. */
static int create_part(struct rcopy_file *file, mode_t mode)
{
	int ret = name_part(file);

	if (ret)
		return ret;
	coming = file;
	file->fd =
		openat(file->dir, file->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			mode & (S_IRWXU | S_IRWXG | S_IRWXO));
	if (file->fd >= 0)
		return 0;
	ret = -errno;
	coming = NULL;
	return ret;
}

static int open_part(struct rcopy_file *file, mode_t mode)
{
	int ret = check_name(file);

	if (ret)
		return ret;
	do
		ret = create_part(file, mode);
	while (ret == -EEXIST);
	return ret;
}

int rcopy_file_open(struct rcopy_file *file, const char *folder, const char *path, mode_t mode)
{
	int ret;

	file->fd = file->dir = -1;
	if (*path == '/' && !(path = skip_folder(folder, path)))
		return -EACCES;
	ret = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ret < 0)
		return -errno;
	ret = descend(ret, path, file->name);
	if (ret < 0)
		return ret;
	file->dir = ret;
	ret = open_part(file, mode);
	if (ret)
		rcopy_file_close(file);
	return ret;
}

int rcopy_file_write(struct rcopy_file *file, const void *data, size_t len_bytes)
{
	const char *next = data;
	ssize_t len;

	for (; len_bytes; len_bytes -= (size_t)len, next += len) {
		len = write(file->fd, next, len_bytes);
		if (len < 0 && errno != EINTR)
			return -errno;
		len = len < 0 ? 0 : len;
	}
	return 0;
}

int rcopy_file_keep(struct rcopy_file *file)
{
	if (renameat(file->dir, file->part, file->dir, file->name))
		return -errno;
	coming = NULL;
	return 0;
}

void rcopy_file_close(struct rcopy_file *file)
{
	if (coming == file)
		unlinkat(file->dir, file->part, 0);
	coming = NULL;
	if (file->fd >= 0)
		close(file->fd);
	if (file->dir >= 0)
		close(file->dir);
	file->fd = file->dir = -1;
}
