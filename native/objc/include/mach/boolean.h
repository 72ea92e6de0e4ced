#pragma once

#define TRUE 1
#define FALSE 0
