#include "proto/imm.h"

#include <endian.h>
#include <string.h>

uint32_t evr_imm(enum evr_imm_op op, uint32_t data)
{
	return (uint32_t)op << EVR_IMM_DATA_BITS | (data & EVR_IMM_DATA_MAX);
}

unsigned int evr_imm_op(uint32_t imm)
{
	return imm >> EVR_IMM_DATA_BITS;
}

uint32_t evr_imm_data(uint32_t imm)
{
	return imm & EVR_IMM_DATA_MAX;
}

uint32_t evr_imm_to_ib(uint32_t imm)
{
	return htobe32(imm);
}

uint32_t evr_imm_from_ib(uint32_t imm_data)
{
	return be32toh(imm_data);
}

void evr_imm_to_message(uint32_t imm, uint8_t message[EVR_IMM_MESSAGE_LEN])
{
	memcpy(message, &imm, sizeof(imm));
}

uint32_t evr_imm_from_message(const uint8_t message[EVR_IMM_MESSAGE_LEN])
{
	uint32_t imm;

	memcpy(&imm, message, sizeof(imm));
	return imm;
}
